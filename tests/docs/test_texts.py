"""No text of the program counts one thing as several: `1 minutes`."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [path for room in ("reconciler", "jobs") for path in sorted((ROOT / room).rglob("*.py"))]
COUNTED = re.compile(r" (seconds|minutes|hours|days|weeks)\b")

NEVER_ONE = {"hours", "length"}
"""The hours of a day on which the clocks change, and a number of days that is too large."""


def counts(source: str) -> list[str]:
    """Each text that puts a value of the run before the plural of a time, without a look at the value."""
    tree = ast.parse(source)
    chosen = {
        id(part)
        for choice in ast.walk(tree)
        if isinstance(choice, ast.IfExp)
        for part in (choice.body, choice.orelse)
    }
    return [
        f"line {text.lineno}: {ast.unparse(text)}"
        for text in ast.walk(tree)
        if isinstance(text, ast.JoinedStr) and id(text) not in chosen
        for value, after in pairwise(text.values)
        if isinstance(value, ast.FormattedValue)
        if not re.match(r"[A-Z_]+\b", ast.unparse(value.value)) and ast.unparse(value.value) not in NEVER_ONE
        if isinstance(after, ast.Constant) and COUNTED.match(str(after.value))
    ]


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('f"{age} minutes old"', 1),
        ('f"{HORIZON.days} days"', 0),
        ('"1 day" if days == 1 else f"{days} days"', 0),
    ],
)
def test_a_count_is_seen_where_nothing_looks_at_its_value(source: str, wrong: int) -> None:
    assert len(counts(source)) == wrong


def test_no_text_counts_one_minute_as_several() -> None:
    assert {path.name: seen for path in FILES if (seen := counts(path.read_text(encoding="utf-8")))} == {}
