"""Which parts of features and sources the core finds."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import reconciler.features
from reconciler import plugins
from reconciler.features import FEATURES
from reconciler.passes.plugin import Feature
from reconciler.run import PARTS
from reconciler.sources import SOURCES

ROOT = Path(reconciler.features.__file__).parents[1]

LOADED = """
import sys
from reconciler import plugins

list(plugins.faces())
rooms = ("reconciler.features.", "reconciler.sources.")
print(*(name for name in sys.modules if name.startswith(rooms)))
"""


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
    assert "reconciler.sources.condition" in sources
    assert list(plugins.modules("nothing")) == []


@pytest.mark.heavy
def test_a_folder_is_known_by_its_face_and_no_other_file_is_loaded() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)

    assert {name.split(".")[2] for name in loaded.stdout.split()} >= {*FEATURES}
    assert "reconciler.features.machines.feature" not in loaded.stdout.split()
    assert "reconciler.sources.imds.source" not in loaded.stdout.split()


def test_every_file_and_folder_of_a_room_is_in_its_list() -> None:
    for room, listed in (("features", FEATURES), ("sources", SOURCES)):
        paths = (path for path in (ROOT / room).iterdir() if path.suffix == ".py" or any(path.glob("*.py")))
        names = {path.stem for path in paths} - {"__init__"}
        assert names == set(listed), f"{room.upper()} in reconciler/{room}/__init__.py has other names"


@pytest.mark.parametrize(
    ("stage", "kinds"),
    [("feature", {"Feature"}), ("settings", {"FeatureSection", "SourceSection"}), ("process", {"Process"})],
)
def test_the_core_finds_every_part_that_a_plugin_makes(stage: str, kinds: set[str]) -> None:
    known = {module.__name__: module for module in plugins.modules(stage)}
    for path in [*ROOT.glob("features/**/*.py"), *ROOT.glob("sources/**/*.py")]:
        made = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if _makes(node, kinds)]
        if made:
            name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
            value = getattr(known.get(name), plugins.VALUES[stage], None)
            assert value is not None, f"{name} has no {plugins.VALUES[stage]}, or is no place for it"
            count = len(value) if isinstance(value, tuple) else 1
            assert count == len(made), f"{plugins.VALUES[stage]} of {name} does not have all of them"


def _makes(node: ast.stmt, kinds: set[str]) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in kinds


def test_a_small_folder_has_the_parts_of_all_stages_in_one_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "__init__.py").write_text("COMMANDS = {'play': 'Play.'}\n")
    (tmp_path / "small" / "feature.py").write_text("FEATURE, SECTIONS = 'it', ()\n")
    monkeypatch.setattr(reconciler.features, "FEATURES", ("small",))
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
    said = f"{feature.name}: `signs` need `removed` or `taken_back`, `object_changes` need `read_objects`"
    assert not feature.signs or feature.removed or feature.taken_back, said
    assert not feature.object_changes or feature.read_objects, said


def test_a_name_without_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler.features, "FEATURES", ("missing",))

    with pytest.raises(ImportError, match=r"reconciler\.features\.missing is listed"):
        list(plugins.modules("feature"))
