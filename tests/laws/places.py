"""Where the functions, classes and constants of the program stand, by their qualified names."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FOLDERS = ("reconciler", "jobs", "charts", "image", "release", "website")
BLOCKS = ("body", "orelse", "handlers", "finalbody")


class DoesNotFit(Exception):
    """A mutant whose place, or whose code in its place, is missing or there more than once."""


def places(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield the qualified name and the node of each function, class, field and constant, "" for the file."""
    yield "", tree
    yield from _below(tree, "", local=False)


def _below(node: ast.AST, prefix: str, *, local: bool) -> Iterator[tuple[str, ast.AST]]:
    for child in (child for block in BLOCKS for child in getattr(node, block, ())):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield prefix + name, child
                yield from _below(child, f"{prefix}{name}.", local=not isinstance(child, ast.ClassDef))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if not local:
                    yield prefix + name, child
            case _:
                yield from _below(child, prefix, local=local)


@cache
def spans_of(text: str) -> dict[str, list[tuple[int, int]]]:
    """Return the lines of the module's statement around each place of a file, of all statements for "".

    Most rules share a file with others, and to parse it takes longer than to find a place in it.
    """
    spans = defaultdict(list)
    for around in ast.parse(text).body:
        first = min(node.lineno for node in (around, *getattr(around, "decorator_list", ())))
        for name, _ in places(ast.Module([around], [])):
            spans[name].append((first - 1, around.end_lineno or first))
    return dict(spans)


class Index:
    """The texts of all Python files of the program, and the places in them."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        paths = sorted(path for folder in _FOLDERS for path in (root / folder).rglob("*.py"))
        self._texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
        self._files: defaultdict[str, list[str]] = defaultdict(list)
        for file, text in self._texts.items():
            for name, spans in spans_of(text).items():
                self._files[name] += [file] * len(spans)

    def text(self, file: str, *, gone: str | None = None) -> str:
        """Return the text of a file, of Python or not.

        If there is none, return `gone`, or raise DoesNotFit without it.
        """
        try:
            return self._texts.get(file) or (self._root / file).read_text(encoding="utf-8")
        except FileNotFoundError:
            if gone is not None:
                return gone
            raise DoesNotFit(f"there is no file {file}") from None

    def file_of(self, place: str) -> str:
        """Return the file of a place: `Lock.take`, or `lease:Lock.take` where several files have one.

        Before the colon stands the end of the module's dotted name. Raise DoesNotFit if not one file fits.
        """
        module, _, name = place.rpartition(":")
        files = [file for file in self._files.get(name, ()) if _ends_with(file, module)]
        if len(files) != 1:
            raise DoesNotFit(f"{place} is in {len(files)} files: {', '.join(files)}")
        return files[0]

    def room_of(self, file: str) -> dict[str, str]:
        """Return the texts of the files in the folder of a file and below it. The file may be gone."""
        folder = file[: file.rindex("/") + 1]
        return {other: text for other, text in self._texts.items() if other.startswith(folder)}


def _ends_with(file: str, module: str) -> bool:
    dotted = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return not module or f".{dotted}".endswith(f".{module}")
