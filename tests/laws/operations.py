"""What a mutant does to the syntax tree of its place: `drop CODE` or `swap CODE => CODE`."""

from __future__ import annotations

import ast
import copy
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.laws.places import BLOCKS, DoesNotFit, places, spans_of

_BLOCKS = (*BLOCKS, "cases")
_FRAMES: tuple[tuple[str, Callable[[Any], list[ast.AST]]], ...] = (
    ("[{}]", lambda first: getattr(first.value, "elts", [])),
    ("try: pass\n{}", lambda first: first.handlers),
    ("match _:\n {}", lambda first: first.cases),
    ("_({})", lambda first: first.value.keywords),
    ("[_ {}]", lambda first: getattr(first.value, "generators", [])),
)
"""Where code that is no statement can stand, and what it is there: an expression, an exception handler, a
case, a keyword argument, a loop of a comprehension."""
_KINDS = (ast.stmt, ast.expr, ast.keyword, ast.comprehension, ast.ExceptHandler, ast.match_case)
_PAIRED = (ast.Compare, ast.Dict, ast.arguments)
"""Their items do not go alone: each belongs to one of a second list."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Nodes and where they hang: one, or statements that follow each other."""

    nodes: list[ast.AST]
    parent: ast.AST
    field: str
    index: int | None
    statement: ast.Module
    """The module's statement around them, alone in a tree, and its lines."""
    lines: tuple[int, int]

    def put(self, nodes: list[ast.AST]) -> None:
        """Hang nodes where these are."""
        if self.index is not None:
            getattr(self.parent, self.field)[self.index : self.index + len(self.nodes)] = nodes
        else:
            (new,) = nodes
            setattr(self.parent, self.field, new)


def mutated(text: str, name: str, operation: str) -> str:
    """Return the text of a file after an operation in the place of this name, "" for all of the file.

    The module's statement around the code loses its comments. Raise DoesNotFit unless the code is there once.
    """
    code = code_of(operation)
    # Of its own, because it changes the tree.
    spots = list(spots_of(text, name, code, parse=ast.parse))
    if len(spots) != 1:
        raise DoesNotFit(f"{code} is there {len(spots)} times")
    spots[0].put(instead(spots[0], operation))
    first, last = spots[0].lines
    lines = text.splitlines(keepends=True)
    lines[first:last] = [f"{ast.unparse(spots[0].statement)}\n"]
    return "".join(lines)


def code_of(operation: str) -> str:
    """Return the code that an operation removes."""
    return operation.partition(" ")[2].partition(" => ")[0]


# Rules of a file follow each other, and to parse it takes longer than to find their code.
_parsed = lru_cache(64)(ast.parse)


def spots_of(
    text: str, name: str, code: str, *, parse: Callable[[str], ast.Module] = _parsed
) -> Iterator[Spot]:
    """Yield where code stands in a place of a file, "" for all of it. Raise DoesNotFit without the place.

    Code is compared as a syntax tree, so its format does not matter. `if late:` is a block with this head,
    `stop(); return` are statements that follow each other. A statement counts, not the expression that it
    consists of.
    """
    spans = spans_of(text).get(name, [])
    if name and len(spans) != 1:
        raise DoesNotFit(f"{name} is there {len(spans)} times")
    lines = text.splitlines(keepends=True)
    # To look for words takes much less time than to parse, and to look for one than to compare trees.
    words = re.findall(r"\w+", code)
    word = max(re.findall(r"\w+", code.partition("; ")[0]), key=len, default="")
    wanted = [(reading, _shapes(reading, code)) for reading in _readings(code)]
    for first, last in spans:
        around = "".join(lines[first:last])
        if not all(each in around for each in words):
            continue
        tree = parse(around)
        place = next(node for known, node in places(tree) if known == name)
        with_word = [number for number, line in enumerate(around.splitlines(), 1) if word in line]
        for parent, field, index, node in _nodes(place, with_word):
            for reading, shapes in wanted:
                if type(node) is not type(reading[0]) or isinstance(parent, ast.Expr):
                    continue
                nodes = [node] if len(reading) == 1 else getattr(parent, field)[index:][: len(reading)]
                if _shapes(nodes, code) == shapes:
                    yield Spot(nodes, parent, field, index, tree, (first, last))


def instead(spot: Spot, operation: str) -> list[ast.AST]:
    """Return what an operation puts where its code stands. Raise DoesNotFit if it can't stand there."""
    verb, _, code = operation.partition(" ")
    _, arrow, new = code.partition(" => ")
    statement = isinstance(spot.nodes[0], ast.stmt)
    match verb, arrow:
        case "drop", "" if spot.index is not None and not isinstance(spot.parent, _PAIRED):
            return [ast.Pass()] if statement else []
        case "swap", " => ":
            kind = next(kind for kind in _KINDS if isinstance(spot.nodes[0], kind))
            nodes = next((reading for reading in _readings(new) if isinstance(reading[0], kind)), None)
            if nodes is None:
                raise DoesNotFit(f"{new} can't stand there")
            # A head gets what stood in the block.
            for block in _BLOCKS if new.endswith(":") else ():
                if isinstance(getattr(spot.nodes[-1], block, None), list):
                    setattr(nodes[-1], block, getattr(spot.nodes[-1], block))
            return nodes
        case _:
            raise DoesNotFit(f"{operation} is not possible")


def _nodes(node: ast.AST, lines: Sequence[int]) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield all nodes below one, but those that have lines of their own and none of these."""
    for field, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and _reaches(child, lines):
                yield node, field, index, child
                yield from _nodes(child, lines)


def _reaches(node: ast.AST, lines: Sequence[int]) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None or last is None:
        return True
    # A decorator stands before its function.
    first = min([first, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    after = bisect_left(lines, first)
    return after < len(lines) and lines[after] <= last


def _readings(code: str) -> Iterator[list[ast.AST]]:
    """Yield what code can be: statements, or one node of another kind."""
    whole = f"{code} pass" if code.endswith(":") else code
    # A block can't follow a semicolon, but a line.
    for lines in (whole, whole.replace("; ", "\n")):
        with suppress(SyntaxError):
            yield list(ast.parse(lines).body)
            break
    for frame, read in _FRAMES:
        with suppress(SyntaxError):
            match ast.parse(frame.format(whole)).body:
                case [first] if len(nodes := read(first)) == 1:
                    yield nodes


def _shapes(nodes: list[ast.AST], code: str) -> list[str]:
    """Return nodes as text, the last one without what stands in its block if the code is a head."""
    *before, last = nodes
    if code.endswith(":"):
        last = copy.copy(last)
        for block in _BLOCKS:
            if isinstance(getattr(last, block, None), list):
                setattr(last, block, [])
    return [ast.dump(node) for node in (*before, last)]
