"""Print the largest parts of the image: what a package, Python or a shared library adds to its size.

    docker save node-maintenance-reconciler:0.1.0 -o image.tar
    python -m image.parts image.tar

It reads the archive that `docker save` and `buildah push IMAGE docker-archive:FILE` write, or a folder with
the files of an image. The sizes are those of the files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LIMIT = 120
"""MiB that all files may have together."""

_MIB = 2**20
_PACKAGE = re.compile(r".*/site-packages/([^/]+)")
# Where Debian and the official images of Python have the rest.
_PARTS = (
    (re.compile(r".*/lib/python3[^/]*/"), "Python: standard library"),
    (re.compile(r".*/(bin/python|libpython)[^/]*$"), "Python: interpreter"),
    (re.compile(r".*\.so[.\d]*$"), "shared libraries"),
)


def files(source: Path) -> Iterator[tuple[str, int]]:
    """Yield the path of each file in an image, and its size in bytes."""
    if source.is_dir():
        for path in source.rglob("*"):
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(source)), path.stat().st_size
        return
    with tarfile.open(source) as archive:
        manifest = archive.extractfile("manifest.json")
        if manifest is None:
            raise KeyError("manifest.json")
        # What is in a later layer replaces what is in an earlier one.
        sizes: dict[str, int] = {}
        for name in json.load(manifest)[0]["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(name)) as layer:
                sizes |= {os.path.normpath(member.name): member.size for member in layer if member.isfile()}
    yield from sizes.items()


def part(path: str) -> str:
    """Return the part of the image to which a file belongs."""
    if package := _PACKAGE.match(path):
        # The metadata counts for its package. A module may be a file of its own.
        return re.sub(r"-[^-]+\.dist-info$|\..*$", "", package[1]).replace("-", "_")
    return next((name for pattern, name in _PARTS if pattern.match(f"/{path}")), "other")


def table(sizes: Counter[str], rows: int) -> list[str]:
    """Return the lines to print: the largest parts, the others together, and the sum."""
    lines = [f"{size / _MIB:7.1f} MiB  {name}" for name, size in sizes.most_common(rows)]
    if len(sizes) > rows:
        left = sum(size for _, size in sizes.most_common()[rows:])
        lines.append(f"{left / _MIB:7.1f} MiB  {len(sizes) - rows} smaller parts")
    return [*lines, f"{sizes.total() / _MIB:7.1f} MiB  all files (at most {LIMIT})"]


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 if the image is too large."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path, help="the archive of an image, or a folder with its files")
    parser.add_argument("--rows", type=int, default=20, help="how many parts to name (default: 20)")
    asked = parser.parse_args(arguments)
    sizes: Counter[str] = Counter()
    try:
        for path, size in files(asked.image):
            sizes[part(path)] += size
    except (KeyError, OSError, tarfile.TarError) as error:
        print(f"{asked.image} is no archive of an image: {error}", file=sys.stderr)
        return 2
    print("\n".join(table(sizes, asked.rows)))
    if sizes.total() > LIMIT * _MIB:
        print(
            f"the image has more than {LIMIT} MiB: name in image/unused.py what no command loads",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
