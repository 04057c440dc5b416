"""Print the size of the project: how much somebody has to know to change a thing.

    python -m tests.size [--list]

Each figure stands between what this program counts at the commit `BEFORE`, and its aim. Nothing here is a
limit but one: no rooms import each other in a circle, and no modules do. For a circle, a room is `jobs`, or a
folder or file directly below `reconciler`. It exits with 1 if there is a circle.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from tests.size.walk import House
from tests.without.words import WORDS, in_core, is_of_core

_ROOT = Path(__file__).parents[2]
_TOOLS = ("charts", "image", "release", "website")
CIRCLES = "circles of imports"
BEFORE = "64aa01d0"

_COMPARED: Mapping[str, tuple[int, int]] = {
    "stays of a node on its way through decide_node": (67, 30),
    "rooms on that way": (18, 10),
    "climbs on that way": (14, 8),
    "carriers on that way": (22, 3),
    "private functions called once": (599, 150),
    "guards against any error": (138, 20),
    "files for a source with an offer": (5, 1),
    "files for a check": (4, 1),
    "files for a rule about starts": (7, 1),
    "files for a setting": (2, 1),
    "files of the core with words of plugins": (122, 0),
    "lines of source without plugins": (49_288, 38_000),
    "lines of source": (73_031, 64_000),
    CIRCLES: (0, 0),
}
"""What a figure was at the commit `BEFORE`, and its aim. Others are printed without."""

_BY_HAND: Mapping[str, int] = {
    "files for a source with an offer": 1,
    "files for a check": 1,
    "files for a rule about starts": 1,
    "files for a setting": 2,
}
"""Files that somebody has to change to add such a thing, beside its test and its page: counted by hand.

The source is a file, which is found in its folder, or one that is installed. The rule about starts is that a
spot preemption ignores `budget.spacing`; law 14 holds with it. The check is one that each start asks. The
setting is its field and the code that does what it says, because what is set knows nothing of what is done.
Count again what a change of the table in CONTRIBUTING is about.
"""


class Figure(NamedTuple):
    """A number, and the places that it counts."""

    value: int
    places: Sequence[str] = ()


def main() -> int:
    """Print the table; return 1 if there is a circle."""
    parser = argparse.ArgumentParser(prog="python -m tests.size", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--list", action="store_true", help="name the places that are counted")
    chosen = parser.parse_args()
    figures = {**measure(_ROOT), **{name: Figure(count) for name, count in _BY_HAND.items()}}
    print(f"{'':50}{BEFORE:>9}{'now':>9}{'aim':>9}")
    for name, figure in figures.items():
        before, aim = (f"{known:,}" for known in _COMPARED[name]) if name in _COMPARED else ("", "")
        print(f"{name:50}{before:>9}{figure.value:>9,}{aim:>9}")
        for place in figure.places if chosen.list or name == CIRCLES else ():
            print(f"    {place}")
    return 1 if figures[CIRCLES].value else 0


def measure(root: Path) -> dict[str, Figure]:
    """Return the figures of the project in this folder, by their names."""
    source, tests, tools = (
        _python(root, *folders) for folders in (("reconciler", "jobs"), ("tests",), _TOOLS)
    )
    trees = {path: ast.parse(text) for path, text in source.items()}
    guards = [f"{path}:{line}" for path, tree in trees.items() for line in sorted(_guards(tree))]
    pages = (page.read_text(encoding="utf-8") for page in root.glob("docs/**/*.md"))
    once = list(_called_once(trees))
    circles = list(_circles(trees))
    walk = House({_module(path): tree for path, tree in trees.items()}).walk("decide_node", "node")
    told = sorted({place for words in WORDS.values() for place in in_core(root, words)})
    return {
        "stays of a node on its way through decide_node": Figure(len(walk.stays), walk.stays),
        "rooms on that way": Figure(len(walk.rooms), walk.rooms),
        "climbs on that way": Figure(len(walk.climbs), walk.climbs),
        "carriers on that way": Figure(len(walk.carriers), walk.carriers),
        "private functions called once": Figure(len(once), once),
        "guards against any error": Figure(len(guards), guards),
        "files of the core with words of plugins": Figure(len(told), told),
        "lines of source without plugins": Figure(
            _lines({path: text for path, text in source.items() if is_of_core(path)})
        ),
        "lines of source": Figure(_lines(source)),
        CIRCLES: Figure(len(circles), circles),
        "files of source": Figure(len(source)),
        "lines of tests": Figure(_lines(tests)),
        "lines of tools": Figure(_lines(tools)),
        "words of docs": Figure(sum(len(page.split()) for page in pages)),
    }


def _python(root: Path, *folders: str) -> dict[Path, str]:
    paths = (path for folder in folders for path in sorted((root / folder).rglob("*.py")))
    return {path.relative_to(root): path.read_text(encoding="utf-8") for path in paths}


def _lines(texts: Mapping[Path, str]) -> int:
    return sum(len(text.splitlines()) for text in texts.values())


def _guards(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that catch any exception, with the helpers that do it for their callers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type and ast.unparse(node.type) == "Exception":
            yield node.lineno
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "guarded" or called.endswith(("faults.of", "faults.step")):
                yield node.lineno


def _called_once(trees: Mapping[Path, ast.AST]) -> Iterator[str]:
    """Yield the private functions whose name stands once in the source besides their definition.

    Those with a decorator are left out, because it may keep them under another name.
    """
    uses = Counter[str]()
    private: list[tuple[str, str]] = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                uses[node.id] += 1
            elif isinstance(node, ast.Attribute):
                uses[node.attr] += 1
            elif isinstance(node, ast.FunctionDef) and _is_private(node.name) and not node.decorator_list:
                private.append((node.name, f"{path}:{node.lineno} {node.name}"))
    yield from (place for name, place in private if uses[name] == 1)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _circles(trees: Mapping[Path, ast.AST]) -> Iterator[str]:
    """Yield a circle of rooms and one of modules, if there are any, as the way around."""
    modules = {_module(path): path for path in trees}
    imports = {name: set(_imports(trees[path], modules)) - {name} for name, path in modules.items()}
    rooms: dict[str, set[str]] = {}
    for name, imported in imports.items():
        rooms.setdefault(_room(name), set()).update(map(_room, imported))
    for arrows in ({room: others - {room} for room, others in rooms.items()}, imports):
        try:
            TopologicalSorter(arrows).prepare()
        except CycleError as error:
            yield " <- ".join(error.args[1])


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(module: str) -> str:
    top, *below = module.split(".")
    return top if top == "jobs" else ".".join((top, *below[:1]))


def _imports(tree: ast.AST, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                if inside in modules:
                    yield inside
                elif node.module in modules:
                    yield node.module


if __name__ == "__main__":
    sys.exit(main())
