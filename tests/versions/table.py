"""The table of docs/versions.md: which versions of Kubernetes the tests ran against, and when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tests.support.controlplane.binaries import MINORS, MODULES, version_of

PAGE = Path(__file__).parents[2] / "docs" / "versions.md"
EVERY = "every test, with each change"
NOT_YET = "not yet"
_ROW = re.compile(r"^\| (\d+\.\d+) \| (v\S+) \| (.+) \|$", re.MULTILINE)
_TABLE = re.compile(r"(<!-- versions -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """A version, such as v1.37.2, and what is known about it."""

    version: str
    result: str


def built() -> dict[str, str]:
    """Return the version of each minor for which there is a module, the newest first."""
    folders = [MODULES / "kubernetes", *(one for one in MINORS.iterdir() if (one / "go.mod").is_file())]
    found = [version_of(folder) for folder in folders]
    found.sort(key=lambda one: [int(part) for part in re.findall(r"\d+", one)], reverse=True)
    return {_minor(version): version for version in found}


def usual() -> str:
    """Return the minor against which `nox -s tests` runs."""
    return _minor(version_of(MODULES / "kubernetes"))


def passed(count: int, day: date) -> str:
    """Return the result of a run in which every test passed."""
    return f"{count} tests passed on {day.isoformat()}"


def rows(page: str) -> dict[str, Row]:
    """Return the table of a page by minor."""
    return {minor: Row(version, result) for minor, version, result in _ROW.findall(page)}


def updated(page: str, results: Mapping[str, str]) -> str:
    """Return the page with a row for each version that is built.

    `results` has new results by minor. Others stay, as long as they are those of the same version.
    """
    before = rows(page)
    lines = ["| Kubernetes | tested with | tests |", "|---|---|---|"]
    for minor, version in built().items():
        old = before.get(minor)
        result = old.result if old and old.version == version else NOT_YET
        result = EVERY if minor == usual() else results.get(minor, result)
        lines.append(f"| {minor} | {version} | {result} |")
    table = "\n".join(lines)
    return _TABLE.sub(rf"\g<1>\n{table}\n\n\g<2>", page)


def _minor(version: str) -> str:
    return ".".join(version.removeprefix("v").split(".")[:2])
