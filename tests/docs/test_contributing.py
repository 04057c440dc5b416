"""CONTRIBUTING's table of where to add what: its files and names exist, its examples are of their kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where to add what")[2]
ROWS = {
    cells[0]: (cells[1], cells[2])
    for line in TABLE.splitlines()
    if line.startswith("| ") and (cells := [cell.strip() for cell in line.strip("|").split(" | ")])
    if cells[0] != "add"
}
PROGRAM = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("reconciler", "jobs", "charts/generator")
    for path in (ROOT / folder).rglob("*.py")
)


def _spans(text: str) -> list[str]:
    return [span for span in re.findall(r"`([^`]+)`", text) if not span.startswith("nox ")]


def _is_path(span: str) -> bool:
    return "/" in span or span.endswith((".py", ".yaml"))


def _files(text: str) -> list[Path]:
    return [ROOT / span for span in _spans(text) if _is_path(span) and "/" in span]


def _missing(row: str) -> list[str]:
    """Return the paths of a row that do not exist; one without a folder is in or beside what is named."""
    folders = {path if path.is_dir() else path.parent for path in _files(row)}
    folders |= {folder.parent for folder in folders if folder.parent != ROOT}
    return [
        span
        for span in _spans(row)
        if _is_path(span)
        and not ((ROOT / span).exists() if "/" in span else any(any(each.rglob(span)) for each in folders))
    ]


def _text(path: Path) -> str:
    return "\n".join(
        each.read_text(encoding="utf-8") for each in ([path] if path.is_file() else path.rglob("*.py"))
    )


def _names(text: str) -> list[str]:
    return [re.split(r"[(\s]", span)[0] for span in _spans(text) if not _is_path(span)]


@pytest.mark.parametrize("kind", ROWS)
def test_each_file_and_name_of_a_row_exists_and_its_example_is_of_that_kind(kind: str) -> None:
    files, example = ROWS[kind]
    names = _names(files)

    assert _missing(f"{files} {example}") == []
    assert [name for name in names if name not in PROGRAM] == []
    for path in _files(example):
        assert not names or any(name in _text(path) for name in names), path
    if not _files(example):
        assert [path for path in _files(files) for name in _names(example) if name not in _text(path)] == []
