"""Which parts of features and sources the core finds."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import reconciler.features
from reconciler import plugins
from reconciler.passes.plugin import Feature
from reconciler.plugins import PluginError
from reconciler.run import PARTS
from reconciler.settings.schema import whole_settings

ROOT = Path(reconciler.features.__file__).parents[1]

LOADED = """
import sys
from reconciler import plugins

list(plugins.faces())
rooms = ("reconciler.features.", "reconciler.sources.")
print(*(name for name in sys.modules if name.startswith(rooms)))
"""


FEATURES, SOURCES = plugins.names("features"), plugins.names("sources")


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Return what puts features with these `__init__.py` in the place of all others, and their folder."""
    made: list[str] = []

    def make(**texts: str) -> Path:
        folder = tmp_path / str(len(made))
        for name, text in texts.items():
            (folder / name).mkdir(parents=True)
            (folder / name / "__init__.py").write_text(text)
            (folder / name / "feature.py").write_text("FEATURE = None\n")
        monkeypatch.setattr(reconciler.features, "__path__", [str(folder)])
        made.extend(texts)
        return folder

    yield make
    for name in made:
        sys.modules.pop(f"reconciler.features.{name}", None)


def test_the_parts_of_a_stage_are_in_the_order_of_the_names() -> None:
    features = [module.__name__ for module in plugins.modules("feature")]
    sources = [module.__name__ for module in plugins.modules("source")]

    assert features == [
        f"reconciler.{room}.{name}.feature"
        for room, names in (("features", FEATURES), ("sources", SOURCES))
        for name in names
        if (ROOT / room / name / "feature.py").exists()
    ]
    assert [name.split(".")[2] for name in sources] == [
        *SOURCES,
        *(name for name in FEATURES if (ROOT / "features" / name / "source.py").exists()),
    ]
    assert "reconciler.sources.condition.source" in sources
    assert list(plugins.modules("nothing")) == []


@pytest.mark.heavy
def test_a_folder_is_known_by_its_face_and_no_other_file_is_loaded() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)

    assert {name.split(".")[2] for name in loaded.stdout.split()} >= {*FEATURES}
    assert "reconciler.features.machines.feature" not in loaded.stdout.split()
    assert "reconciler.sources.imds.source" not in loaded.stdout.split()


def test_a_folder_has_the_place_that_it_says_and_all_others_are_in_the_order_of_their_names(
    in_place: Callable[..., Path],
) -> None:
    in_place(zoo="PLACE = -1", last="PLACE = 1", b="", a="", city="PLACE = -1")

    assert plugins.names("features") == ("city", "zoo", "a", "b", "last")


def test_a_plugin_that_is_no_good_is_refused_with_its_file(in_place: Callable[..., Path]) -> None:
    in_place(odd="PLACE = 7")
    with pytest.raises(ImportError, match=r"^reconciler/features/odd/__init__\.py: PLACE is 7, and not"):
        plugins.names("features")

    (in_place(hollow="") / "hollow" / "feature.py").unlink()
    with pytest.raises(ImportError, match=r"^reconciler/features/hollow has none of .*feature\.py"):
        plugins.names("features")

    (in_place(twice="") / "twice.py").touch()
    with pytest.raises(ImportError, match=r"^reconciler/features/twice\.py and reconciler/features/twice/ "):
        plugins.names("features")


@pytest.mark.parametrize(
    ("stage", "kinds"),
    [
        ("feature", {"Feature"}),
        ("settings", {"FeatureSection", "SourceSection", "PolicyKey"}),
        ("process", {"Process"}),
    ],
)
def test_the_core_finds_every_part_that_a_plugin_makes(stage: str, kinds: set[str]) -> None:
    known = {module.__name__: module for module in plugins.modules(stage)}
    for path in [*ROOT.glob("features/**/*.py"), *ROOT.glob("sources/**/*.py")]:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        own = {node.name for node in classes if any(_named(base) in kinds for base in node.bases)}
        made = [node for node in body if _makes(node, kinds | own)]
        if made:
            name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
            value = getattr(known.get(name), plugins.VALUES[stage], None)
            assert value is not None, f"{name} has no {plugins.VALUES[stage]}, or is no place for it"
            count = len(value) if isinstance(value, tuple) else 1
            assert count == len(made), f"{plugins.VALUES[stage]} of {name} does not have all of them"


def _named(base: ast.expr) -> str:
    """The name of a base class, without its type parameters."""
    plain = base.value if isinstance(base, ast.Subscript) else base
    return plain.id if isinstance(plain, ast.Name) else ""


def _makes(node: ast.stmt, kinds: set[str]) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in kinds


def test_a_small_folder_has_the_parts_of_all_stages_in_one_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "__init__.py").write_text("COMMANDS = {'play': 'Play.'}\n")
    (tmp_path / "small" / "feature.py").write_text("FEATURE, SECTIONS = 'it', ()\n")
    monkeypatch.setattr(reconciler.features, "__path__", [str(tmp_path)])

    def having(stage: str) -> list[str]:
        return [module.__name__ for module in plugins.modules(stage) if ".small." in module.__name__]

    assert having("feature") == having("settings") == ["reconciler.features.small.feature"]
    assert having("process") == []
    assert plugins.commands_of("reconciler.features.small").__name__ == "reconciler.features.small.feature"
    (tmp_path / "small" / "settings.py").write_text("SECTIONS = ()\n")
    importlib.invalidate_caches()
    assert having("settings") == ["reconciler.features.small.settings"]


@pytest.mark.parametrize("feature", PARTS.features, ids=lambda feature: feature.name)
def test_what_a_feature_writes_it_can_find_and_remove(feature: Feature) -> None:
    said = f"{feature.name}: `signs` need `removed` or `taken_back`"
    assert not feature.signs or feature.removed or feature.taken_back, said


Install = Callable[..., None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where packages are installed, for one test."""
    caches = (plugins.installed, plugins.load_installed, plugins.is_any_installed, whole_settings)
    known = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith("toy"):
            del sys.modules[name]
    for cached in caches:
        cached.cache_clear()


def install(folder: Path, text: str, module: str = "toy", name: str = "toy") -> None:
    """Install a package of one module with an entry point of this name."""
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(f"[{plugins.ENTRY_POINT}]\n{name} = {module}\n", encoding="utf-8")


def test_what_is_installed_comes_after_the_programs_own_in_the_stages_that_it_has(folder: Path) -> None:
    install(folder, "RELIES_ON = 1\nSOURCES = ()\nCOMMANDS = {}\n", "toy_b", "b")
    install(folder, "RELIES_ON = 1\nSOURCES = ()\n", "toy_a", "a")

    assert [module.__name__ for module in plugins.modules("source")][-2:] == ["toy_a", "toy_b"]
    assert "toy_a" not in [module.__name__ for module in plugins.modules("feature")]
    assert [face.__name__ for face in plugins.faces()][-2:] == ["toy_a", "toy_b"]
    assert plugins.commands_of("toy_b") is sys.modules["toy_b"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("RELIES_ON = 2", "it has RELIES_ON = 2, and this program has 1", id="other version"),
        pytest.param("", "it has RELIES_ON = None, and this program has 1", id="no version"),
        pytest.param("1 / 0", "it can't be loaded: ZeroDivisionError: division by zero", id="an exception"),
        pytest.param(
            "from reconciler.profiles.vocabulary import check\ncheck('windowOpen')(print)\n",
            "it can't be loaded: ValueError: windowOpen: two plugins have this name",
            id="a check of the program",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name_and_what_to_do(folder: Path, text: str, why: str) -> None:
    install(folder, text)

    with pytest.raises(PluginError) as refused:
        plugins.installed()
    assert str(refused.value) == (
        f"the plugin toy of toy 1.0: {why}. Nothing is started: install a version of it for RELIES_ON = 1, "
        "or uninstall it; see docs/plugins.md"
    )


def test_two_packages_bring_no_plugin_of_one_name(folder: Path) -> None:
    install(folder, "RELIES_ON = 1", "toy_a", "same")
    install(folder, "RELIES_ON = 1", "toy_b", "same")

    with pytest.raises(
        PluginError, match=r"the plugin same of toy_[ab] 1.0: it has the name of a plugin of toy_[ab]"
    ):
        plugins.installed()


def test_a_name_that_exists_is_refused_with_who_brings_it(folder: Path) -> None:
    install(folder, "RELIES_ON = 1")
    own = plugins.file_of(plugins)
    (file,) = [plugins.file_of(plugin.module) for plugin in plugins.installed()]

    assert plugins.by_name("word", [(own, "ab"), (file, "c")], str.upper) == {"A": "a", "B": "b", "C": "c"}
    with pytest.raises(
        PluginError, match=r"^the plugin toy of toy 1.0: reconciler/plugins.py has another word a\."
    ):
        plugins.by_name("word", [(own, "ab"), (file, "a")], str)
    with pytest.raises(
        ValueError, match=r"^reconciler/plugins.py: the plugin toy of toy 1.0 has another word a$"
    ):
        plugins.by_name("word", [(file, "a"), (own, "ab")], str)


@pytest.mark.parametrize(
    ("section", "key", "of_source"),
    [
        pytest.param("SourceSection", "imds", "sources.imds", id="below sources"),
        pytest.param("FeatureSection", "windows", "windows", id="of the core"),
        pytest.param("FeatureSection", "notify", "notify", id="of a feature"),
    ],
)
def test_no_plugin_has_a_section_that_exists(folder: Path, section: str, key: str, of_source: str) -> None:
    made = f"{section}(key='{key}', type=int, default=0, description='A number.')"
    install(folder, f"from reconciler.settings.schema import *\nRELIES_ON = 1\nSECTIONS = ({made},)\n")

    with pytest.raises(PluginError, match=f"py has another section {of_source}\\."):
        whole_settings()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("RELIES_ON = 2", "it has RELIES_ON = 2", id="version"),
        pytest.param(
            "RELIES_ON, COMMANDS = 1, {'sweep': None}",
            "jobs/commands/__init__.py has another command sweep",
            id="command",
        ),
        pytest.param(
            "from reconciler.sources.condition.source import SOURCES\nRELIES_ON = 1",
            "reconciler/sources/condition/source.py has another source nodeConditions",
            id="source",
        ),
        pytest.param(
            "from reconciler.model.permission_kinds import PermissionKind\nRELIES_ON = 1\n"
            "PERMISSIONS = (PermissionKind(name='hold', command='a', noun='b', done='c'),)",
            "reconciler/model/keys.py has another key of nodes node-maintenance.dev/hold",
            id="permission",
        ),
    ],
)
def test_nothing_starts_with_a_plugin_that_does_not_fit(tmp_path: Path, text: str, why: str) -> None:
    install(tmp_path, text)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT.parent}"}
    command = [sys.executable, "-m", "jobs", "report", "--kubeconfig", "missing"]

    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith(f"the plugin toy of toy 1.0: {why}")
