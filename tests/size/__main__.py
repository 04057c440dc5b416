"""How large the project is, beside the ceilings and targets of `ceilings.toml`.

    python -m tests.size [--list]

It exits with 1 if a figure is above its ceiling.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[2]
_NOT_CORE = ("features", "simulation", "sources")
_STAGES = ("commands", "feature", "process", "settings", "source")
"""Files of features and sources that the core loads by these names."""

_TOOLS = ("charts", "image", "release", "website")


class Part(NamedTuple):
    """A place in the project, and its size in lines or fields."""

    size: int
    place: str


class Figure(NamedTuple):
    """What is compared with a ceiling, and the parts that are too large or too small."""

    value: int
    parts: Sequence[Part] = ()


def main() -> int:
    """Print the table; return 1 if a figure is above its ceiling."""
    parser = argparse.ArgumentParser(prog="python -m tests.size", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--list", action="store_true", help="name the functions, classes and modules")
    chosen = parser.parse_args()
    figures = measure(_ROOT)
    limits = tomllib.loads(Path(__file__).with_name("ceilings.toml").read_text())
    print(f"{'':30}{'now':>9}{'ceiling':>9}{'target':>9}")
    for name, figure in figures.items():
        print(f"{name:30}{figure.value:9,}{limits[name]['ceiling']:9,}{limits[name]['target']:9,}")
        for part in sorted(figure.parts, reverse=True) if chosen.list else ():
            print(f"{part.size:6,}  {part.place}")
    messages = above(figures, limits)
    for message in messages:
        print(message, file=sys.stderr)
    return 1 if messages else 0


def above(figures: Mapping[str, Figure], limits: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a sentence for each figure above its ceiling: which one, and by how much."""
    return [
        f"{name}: {figure.value:,} is {over:,} above the ceiling of {limits[name]['ceiling']:,}"
        for name, figure in figures.items()
        if (over := figure.value - limits[name]["ceiling"]) > 0
    ]


def measure(root: Path) -> dict[str, Figure]:
    """Return the figures of the project in this folder, by their names in `ceilings.toml`."""
    source, tests = _python(root, "reconciler", "jobs"), _python(root, "tests")
    tools = _python(root, *_TOOLS)
    lines = {path: len(text.splitlines()) for path, text in source.items()}
    core = [path for path in source if path.parts[0] == "reconciler" and path.parts[1] not in _NOT_CORE]
    functions: list[Part] = []
    classes: list[Part] = []
    for path, text in source.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                functions.append(Part(length, f"{path}:{node.lineno} {node.name}"))
            elif isinstance(node, ast.ClassDef) and "settings" not in path.with_suffix("").parts:
                classes.append(Part(len(set(_fields(node))), f"{path}:{node.lineno} {node.name}"))
    long = [part for part in functions if part.size > 60]
    wide = [part for part in classes if part.size > 15]
    short = [Part(lines[path], str(path)) for path in source if lines[path] < 40 and _joinable(path)]
    return {
        "lines of source": Figure(sum(lines.values())),
        "files of source": Figure(len(source)),
        "lines of the core": Figure(sum(lines[path] for path in core)),
        "lines of tests": Figure(sum(len(text.splitlines()) for text in tests.values())),
        "lines of tools": Figure(sum(len(text.splitlines()) for text in tools.values())),
        "lines of the longest function": Figure(max(functions, default=Part(0, "")).size),
        "functions over 60 lines": Figure(len(long), long),
        "fields of the largest class": Figure(max(classes, default=Part(0, "")).size),
        "classes over 15 fields": Figure(len(wide), wide),
        "modules under 40 lines": Figure(len(short), short),
        "words of docs": Figure(sum(len(page.read_text().split()) for page in root.glob("docs/**/*.md"))),
    }


def _python(root: Path, *folders: str) -> dict[Path, str]:
    paths = (path for folder in folders for path in sorted((root / folder).rglob("*.py")))
    return {path.relative_to(root): path.read_text() for path in paths}


def _fields(node: ast.ClassDef) -> Iterator[str]:
    """Yield what the body declares, and what `__init__` sets on `self`."""
    for child in node.body:
        if isinstance(child, ast.AnnAssign) and "ClassVar" not in ast.unparse(child.annotation):
            yield ast.unparse(child.target)
        elif isinstance(child, ast.FunctionDef) and child.name == "__init__":
            for target in ast.walk(child):
                if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store):
                    yield target.attr


def _joinable(path: Path) -> bool:
    """Say whether the module is neither a package's face nor a plugin, so that it could join another."""
    if path.stem in ("__init__", "__main__") or path.parent.name in ("checks", "triggers"):
        return False
    return path.stem not in _STAGES or path.parts[1] not in ("features", "sources")


if __name__ == "__main__":
    sys.exit(main())
