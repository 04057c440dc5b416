"""The picture of the program: `python -m website.house FILE`, or `nox -s docs`.

Its floors are the layers of the import contract, so each room imports only from the floors below it. What a
room is for is the first sentence of its docstring.
"""

from __future__ import annotations

import ast
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from reconciler.plugins import names

ROOT = Path(__file__).parents[1]
_OF_PLUGINS = ("features", "sources")
"""Rooms whose folders and files are plugins."""
_STAGES = ("observe", "assess", "schedule", "decide", "act", "report")

_WIDTH, _MARGIN, _GAP = 1000, 16, 12
_LINE = 17
_LETTER = 6.7
"""Width of a letter of 12 pixels, a little too wide, because each browser has a font of its own."""
_STYLE = """
svg { background: #fff; font: 12px system-ui, sans-serif; fill: #1f2937 }
rect { fill: #eef2ff; stroke: #6366f1 } rect.plugin { fill: #ecfdf5; stroke: #059669 }
.name { font-weight: 600; font-size: 14px } .stage { fill: #4338ca; font-weight: 600 }
@media (prefers-color-scheme: dark) {
svg { background: #111827; fill: #e5e7eb } .stage { fill: #a5b4fc }
rect { fill: #1e1b4b } rect.plugin { fill: #022c22 } }
"""


class Room(NamedTuple):
    """A folder or file of the program, what it is for, and the plugins in it."""

    name: str
    purpose: str
    plugins: Sequence[str] = ()


def floors(root: Path = ROOT) -> list[list[Room]]:
    """Return the rooms of each floor, the highest floor first. Raise KeyError if no contract has layers."""
    configured = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configured["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers"))
    inside = [[_room(root, f"reconciler/{name.strip()}") for name in layer.split("|")] for layer in layers]
    return [[_room(root, "jobs")], *inside]


def _room(root: Path, path: str) -> Room:
    folder = root / path
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    plugins = names(folder.name) if folder.name in _OF_PLUGINS else ()
    return Room(folder.name, (ast.get_docstring(tree) or "").partition("\n")[0], plugins)


def picture(storeys: Sequence[Sequence[Room]]) -> str:
    """Return the picture as SVG."""
    parts: list[str] = []
    top = _MARGIN + _LINE
    parts.append(f'<text class="stage" x="{_MARGIN}" y="{top}">A pass: {" → ".join(_STAGES)}</text>')
    top += _GAP
    for rooms in storeys:
        width = (_WIDTH - 2 * _MARGIN - _GAP * (len(rooms) - 1)) / len(rooms)
        texts = [list(_lines(room, width)) for room in rooms]
        height = _LINE * (max(map(len, texts)) + 1) + _GAP
        for index, (room, lines) in enumerate(zip(rooms, texts, strict=True)):
            left = _MARGIN + index * (width + _GAP)
            kind = ' class="plugin"' if room.plugins else ""
            parts.append(
                f'<rect{kind} x="{left:.0f}" y="{top}" width="{width:.0f}" height="{height}" rx="6"/>'
                f'<text class="name" x="{left + _GAP:.0f}" y="{top + _LINE + 2}">{escape(room.name)}</text>'
            )
            for number, line in enumerate(lines, start=2):
                parts.append(
                    f'<text x="{left + _GAP:.0f}" y="{top + _LINE * number + 2}">{escape(line)}</text>'
                )
        top += height + _GAP
    last = "Each room imports only from the floors below it. Green rooms hold plugins: each can be deleted."
    parts.append(f'<text x="{_MARGIN}" y="{top + _LINE}">{last}</text>')
    height = top + 2 * _LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
        f"<title>The rooms of the program</title><style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _lines(room: Room, width: float) -> Iterator[str]:
    letters = int((width - 2 * _GAP) / _LETTER)
    yield from textwrap.wrap(room.purpose, letters)
    yield from textwrap.wrap(", ".join(room.plugins), letters)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(floors()), encoding="utf-8")
