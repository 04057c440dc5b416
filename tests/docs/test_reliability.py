"""docs/reliability.md names tests that exist, one entry for each thing that was found."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_finding_names_a_test() -> None:
    entries = [
        line for line in PAGE.partition("\n## What was found\n")[2].splitlines() if line.startswith("- ")
    ]

    assert entries
    assert [entry for entry in entries if not _NAMED.search(entry)] == []


def test_every_test_that_the_page_names_exists() -> None:
    named = _NAMED.findall(PAGE)

    assert named
    assert [f"{file}::{test}" for file, test in named if not _exists(ROOT / file, test)] == []


def _exists(file: Path, test: str) -> bool:
    if not file.is_file():
        return False
    return not test or f"\ndef {test}(" in file.read_text(encoding="utf-8")
