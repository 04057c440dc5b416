"""The version of the program: pyproject.toml decides it, and every other place repeats it.

    python -m release.version 0.2.0

writes it into all of them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = "node-maintenance-reconciler"
_NUMBERS = r"\d+\.\d+\.\d+"
# Files, and what stands before the version in a line of them.
PLACES = (
    ("pyproject.toml", r'^version = "'),
    ("Dockerfile", r"^ARG VERSION="),
    ("reconciler/__init__.py", r'^__version__ = "'),
    ("k8s/**/*.yaml", r"image: node-maintenance-reconciler:"),
    ("charts/*/Chart.yaml", r"^version: "),
    ("charts/*/Chart.yaml", r"^appVersion: "),
    ("README.md", r"\bnode-maintenance-reconciler:"),
    ("docs/**/*.md", r"newTag: "),
    ("docs/**/*.md", r"\bnode-maintenance-reconciler:"),
    ("docs/**/*.md", r"\bkubectl-maintenance-"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """One place that has the version: the path in the repository, the line from 1 on, and what it says."""

    path: str
    line: int
    version: str


def version(root: Path = ROOT) -> str:
    """Return the version of pyproject.toml, such as 0.1.0."""
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def places(root: Path = ROOT) -> Iterator[Place]:
    """Yield each place that has the version."""
    for files, before in PLACES:
        for file in sorted(root.glob(files)):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                for found in re.finditer(rf"{before}({_NUMBERS})", line):
                    yield Place(str(file.relative_to(root)), number, found[1])


def write(new: str, root: Path = ROOT) -> None:
    """Write a version into each place; ValueError if it is not three numbers."""
    # Python, Helm and image tags each allow more, but not the same.
    if not re.fullmatch(_NUMBERS, new):
        raise ValueError(f"{new} is not a version of three numbers, such as 0.2.0")
    for files, before in PLACES:
        for file in sorted(root.glob(files)):
            text = file.read_text(encoding="utf-8")
            written = re.sub(rf"({before}){_NUMBERS}", rf"\g<1>{new}", text, flags=re.MULTILINE)
            if written != text:
                file.write_text(written, encoding="utf-8")


def write_commit(commit: str, root: Path) -> None:
    """Write the commit that `reconciler --version` says into a copy of the tree."""
    file = root / "reconciler" / "__init__.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('__commit__ = ""', f'__commit__ = "{commit}"'), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m release.version VERSION")
    try:
        write(sys.argv[1])
    except ValueError as error:
        sys.exit(str(error))
