"""What the pages of docs/ have: their texts, and the names in their headings, rows and entries."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def headings(page: str) -> set[str]:
    """The headings of a page below its title."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return {match[1].strip("`") for match in re.finditer(r"^#{2,4} (.+)$", text, re.MULTILINE)}


def rows(page: str) -> set[str]:
    """The names at the beginning of the rows of tables and of the entries of lists on a page."""
    beginnings = re.findall(r"^(?:\| |- )(`.+?)(?: \||: )", written(page), re.MULTILINE)
    return {name for beginning in beginnings for name in re.findall(r"`([^`]+)`", beginning)}


def named(page: str) -> set[str]:
    """The names in the headings, rows and entries of a page."""
    return headings(page) | rows(page)


def written(page: str) -> str:
    """The text of a page."""
    return (ROOT / "docs" / page).read_text(encoding="utf-8")
