"""The address of the project's repository: pyproject.toml decides it, and every other place repeats it.

    python -m release.repository OWNER/NAME

writes it into all of them, once for a fork that stays one. A release does this in its own copy of the tree,
so that what a fork publishes leads to the fork.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from release.version import ROOT

HOST = "https://github.com"
REGISTRY = "ghcr.io"


def address(root: Path = ROOT) -> str:
    """Return the address of the repository that pyproject.toml names, without a slash at the end."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Repository"])


def full_name(root: Path = ROOT) -> str:
    """Return the repository as OWNER/NAME."""
    return address(root).removeprefix(f"{HOST}/")


def image_name(repository: str) -> str:
    """Return where the repository OWNER/NAME publishes its image; registries demand lower case."""
    return f"{REGISTRY}/{repository.lower()}"


def tree(root: Path = ROOT) -> list[Path]:
    """Return the paths of the tree's files: those that Git knows, and new ones that it would add."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=root, capture_output=True, encoding="utf-8", check=True)
    names = sorted(set(done.stdout.split("\0")) - {""})
    # A file that is deleted, and not committed yet, is one that Git still knows.
    return [Path(name) for name in names if (root / name).is_file()]


def write(new: str, root: Path, files: Iterable[Path]) -> None:
    """Write the repository OWNER/NAME into these files; ValueError if it is no such name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+", new):
        raise ValueError(f"{new} is not a repository, such as OWNER/NAME")
    # Not the repositories whose names go on after ours.
    old = re.compile(rf"{re.escape(address(root))}(?![\w-])".encode())
    for file in files:
        text = (root / file).read_bytes()
        written = old.sub(f"{HOST}/{new}".encode(), text)
        if written != text:
            (root / file).write_bytes(written)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m release.repository OWNER/NAME")
    try:
        write(sys.argv[1], ROOT, tree())
    except ValueError as error:
        sys.exit(str(error))
