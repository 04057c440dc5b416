"""Print the size of the project: how much somebody has to know to change a thing.

    python -m tests.size [--list]

Nothing here is a limit but one: no rooms import each other in a circle, and no modules do. A room is
`jobs`, or a folder or file directly below `reconciler`. It exits with 1 if there is a circle.
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

_ROOT = Path(__file__).parents[2]
_PLUGINS = ("features", "sources")
_TOOLS = ("charts", "image", "release", "website")
CIRCLES = "circles of imports"


class Figure(NamedTuple):
    """A number, and the places that it counts."""

    value: int
    places: Sequence[str] = ()


def main() -> int:
    """Print the table; return 1 if there is a circle."""
    parser = argparse.ArgumentParser(prog="python -m tests.size", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--list", action="store_true", help="name the places that are counted")
    chosen = parser.parse_args()
    figures = measure(_ROOT)
    for name, figure in figures.items():
        print(f"{name:36}{figure.value:9,}")
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
    return {
        CIRCLES: Figure(len(circles), circles),
        "private functions called once": Figure(len(once), once),
        "guards against any error": Figure(len(guards), guards),
        "lines of source": Figure(_lines(source)),
        "lines of source without plugins": Figure(
            _lines({path: text for path, text in source.items() if not _is_of_plugin(path)})
        ),
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


def _is_of_plugin(path: Path) -> bool:
    room = path.parts[1] in _PLUGINS
    return room and path.parts[2:] != ("__init__.py",)


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
