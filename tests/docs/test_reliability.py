"""docs/reliability.md names tests that exist, one row for each thing that was found."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_finding_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]

    assert rows
    assert [row for row in rows if not _NAMED.search(row)] == []


def test_every_test_that_the_page_names_exists() -> None:
    named = _NAMED.findall(PAGE)

    assert named
    assert [f"{file}::{test}" for file, test in named if not _exists(ROOT / file, test)] == []


def _exists(file: Path, test: str) -> bool:
    if not file.is_file():
        return False
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return not test or any(isinstance(node, ast.FunctionDef) and node.name == test for node in ast.walk(tree))
