"""Our keys are spelled in one file, and that file needs nothing but the standard library."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from pathlib import Path

import jobs
import reconciler
from reconciler.model import keys
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys

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
    assert "from reconciler" not in inspect.getsource(keys)


def test_the_command_that_approves_names_the_settings_of_another_prefix() -> None:
    assert OwnKeys().approve("a") == "reconciler approve a"
    assert OwnKeys("cloud.sap").approve("a") == "reconciler approve a --config FILE"
