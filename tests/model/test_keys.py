"""Our keys are spelled in one file, and that file needs nothing but the standard library."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from pathlib import Path
from types import ModuleType

import pytest

import jobs
import reconciler
from reconciler import plugins
from reconciler.model import keys
from reconciler.model.keys import DEFAULT_PREFIX, NodeKey, OwnKeys, Writer
from reconciler.model.permission_kinds import PermissionKind

NAMES = [
    name
    for name, value in vars(OwnKeys).items()
    if isinstance(value, cached_property) and isinstance(getattr(OwnKeys(), name), str)
]


def test_each_key_has_the_prefix_and_a_name_of_its_own() -> None:
    ours = OwnKeys("example.com")
    found = [getattr(ours, name) for name in NAMES]

    assert len(NAMES) > 8
    assert len(set(found)) == len(NAMES)
    assert all(ours.owns(key) for key in found)
    assert not ours.owns("example.com.evil/record")


def test_no_other_file_spells_a_key() -> None:
    words = "|".join(NAMES)
    spelled = re.compile(rf"(?:prefix\}}|{re.escape(DEFAULT_PREFIX)})/(?:{words})\b")
    folders = [Path(package.__file__ or "").parent for package in (reconciler, jobs)]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    guilty = [file.name for file in files if spelled.search(file.read_text(encoding="utf-8"))]

    assert spelled.search(f"{DEFAULT_PREFIX}/record")
    assert guilty == []
    # The agent imports it, and makes no list of keys.
    assert "\nfrom reconciler" not in inspect.getsource(keys)


def test_the_command_that_permits_names_the_settings_of_another_prefix() -> None:
    assert OwnKeys().permit("allow", "a") == "reconciler allow a"
    assert OwnKeys("cloud.sap").permit("allow", "a") == "reconciler allow a --config FILE"


@pytest.mark.parametrize(
    ("stage", "gives"),
    [
        ("permissions", [PermissionKind(name="hold", command="allow", noun="permit", done="allowed")]),
        ("keys", [NodeKey("hold", Writer.PASS)]),
    ],
)
def test_no_plugin_takes_a_key_of_the_core(
    monkeypatch: pytest.MonkeyPatch, stage: str, gives: list[object]
) -> None:
    plugin = ModuleType("toy")
    setattr(plugin, stage.upper(), gives)
    monkeypatch.setattr(plugins, "modules", lambda asked: [plugin] if asked == stage else [])

    taken = r"^toy.py: reconciler/model/keys.py has another key of nodes a\.example/hold$"
    with pytest.raises(ValueError, match=taken):
        OwnKeys("a.example").on_nodes  # noqa: B018 - the list is made when it is read
