"""What the four teeth find in a copy of a few files, from which a plugin was deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.without import teeth
from tests.without.__main__ import CHART, ROOT, delete_manifest, unlink
from tests.without.teeth import left_of, settings_keys
from tests.without.words import WORDS, Words

HOOKS = Words((r"(?<!web)hook",), ("hooks", "hooks.timeout"))
NAME = "features/hooks"


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A project, and a copy of it from which the feature `hooks` was deleted."""
    monkeypatch.setattr(teeth, "WORDS", {NAME: HOOKS})
    files = {
        "jobs/__init__.py": "",
        "jobs/__main__.py": "print(open('schema.json').read())\n",
        "schema.json": '{"properties": {"hooks": {}}}',
        "reconciler/model/hooks.py": "",
        "reconciler/model/plan.py": "# what a hook waits for\n",
        "reconciler/model/pod.py": "# what a webhook denies\n",
        "tests/laws/test_a.py": "from tests.features.hooks import jobs\n",
        "tests/laws/test_b.py": "def test() -> None:\n    import reconciler.features.hooks.feature\n",
        "tests/laws/test_c.py": "import reconciler.model.hooks\n",
        "docs/install.md": "[hooks](hooks.md#a-job), [this](install.md), [there](https://example.com/a.md)\n",
        "k8s/monitoring/rules.yaml": "groups: []\n# a hook\n",
    }
    gone = {
        "docs/hooks.md": "",
        "reconciler/features/hooks/feature.py": "",
        "tests/features/hooks/jobs.py": "",
    }
    for root, written in ((tmp_path / "whole", {**files, **gone}), (tmp_path / "copy", files)):
        for name, text in written.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    return tmp_path / "whole", tmp_path / "copy"


def test_each_tooth_finds_what_is_left(projects: tuple[Path, Path]) -> None:
    assert left_of([NAME], *projects) == {
        "settings": ["hooks"],
        "words": ["reconciler/model/plan.py"],
        "tests": ["tests/laws/test_a.py"],
        "pointers": ["docs/install.md -> hooks.md", "k8s/monitoring/rules.yaml:2"],
    }


def test_a_key_below_a_choice_or_in_a_list_has_its_whole_name() -> None:
    schema = {
        "$defs": {"Each": {"properties": {"conditions": True}}},
        "properties": {"overrides": {"anyOf": [{"items": {"$ref": "#/$defs/Each"}}]}},
    }

    assert settings_keys(schema) == {"overrides", "overrides.conditions"}


@pytest.mark.parametrize("name", WORDS)
def test_what_belongs_to_a_plugin_is_there(name: str) -> None:
    places = (
        *(f"docs/{page}" for page in WORDS[name].pages),
        *(f"tests/{test}" for test in WORDS[name].tests),
        *(f"k8s/{manifest}" for manifest in WORDS[name].manifests),
    )

    assert [place for place in places if not (ROOT / place).exists()] == []


def test_a_manifest_goes_with_its_line_and_with_what_the_chart_has_for_it(tmp_path: Path) -> None:
    for name in ("k8s/board", "k8s/jobs", f"{CHART}/templates/jobs", "charts/generator/folders"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "k8s/board/kustomization.yaml").write_text("resources:\n- a-rules.yaml\n- rules.yaml\n")
    (tmp_path / "k8s/jobs/kustomization.yaml").write_text("resources:\n- rbac.yaml\n")
    for name in ("k8s/board/a-rules.yaml", "k8s/board/rules.yaml", "charts/generator/folders/jobs.py"):
        (tmp_path / name).touch()

    delete_manifest(tmp_path, "board/a-rules.yaml")
    delete_manifest(tmp_path, "jobs")

    assert (tmp_path / "k8s/board/kustomization.yaml").read_text() == "resources:\n- rules.yaml\n"
    files = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"kustomization.yaml", "rules.yaml"}
    assert not (tmp_path / CHART / "templates/jobs").exists()


def test_links_to_pages_that_are_gone_leave_their_words(tmp_path: Path) -> None:
    (tmp_path / "docs/runbooks").mkdir(parents=True)
    install = "See [`hooks[]`](hooks.md#a-job), [this](install.md#a) and [c](b/c.md).\n"
    (tmp_path / "docs/install.md").write_text(install)
    (tmp_path / "docs/runbooks/Late.md").write_text("[A hook](../hooks.md) or [this](../install.md)\n")
    (tmp_path / "README.md").write_text("[hooks](docs/hooks.md), [install](docs/install.md)\n")

    unlink(tmp_path)

    assert (tmp_path / "docs/install.md").read_text() == "See `hooks[]`, [this](install.md#a) and c.\n"
    assert (tmp_path / "docs/runbooks/Late.md").read_text() == "A hook or [this](../install.md)\n"
    assert (tmp_path / "README.md").read_text() == "hooks, [install](docs/install.md)\n"
