"""Which parts of features and sources the core finds."""

from __future__ import annotations

import subprocess
import sys

import pytest

import reconciler.features
from reconciler import plugins
from reconciler.features import FEATURES
from reconciler.sources import SOURCES

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
        *(f"reconciler.features.{name}.feature" for name in ("machines", "workflows", "publishing")),
        "reconciler.sources.imds.feature",
    ]
    assert [name.split(".")[2] for name in sources] == [*SOURCES]
    assert "reconciler.sources.condition" in sources
    assert list(plugins.modules("nothing")) == []


@pytest.mark.heavy
def test_a_folder_is_known_by_its_face_and_no_other_file_is_loaded() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)

    assert {name.split(".")[2] for name in loaded.stdout.split()} >= {*FEATURES}
    assert "reconciler.features.machines.feature" not in loaded.stdout.split()
    assert "reconciler.sources.imds.source" not in loaded.stdout.split()


def test_a_name_without_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciler.features, "FEATURES", ("toy",))

    with pytest.raises(ImportError, match=r"reconciler\.features\.toy is listed"):
        list(plugins.modules("feature"))
