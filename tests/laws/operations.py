"""What a mutant does to the syntax tree of its place: `drop CODE` or `swap CODE => CODE`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.laws.places import BLOCKS, DoesNotFit, places, spans_of

_BLOCKS = (*BLOCKS, "cases")
_FRAMES: tuple[tuple[str, Callable[[Any], list[ast.AST]]], ...] = (
    ("{}", lambda first: [first]),
    ("[{}]", lambda first: getattr(first.value, "elts", [])),
    ("try: pass\n{}", lambda first: first.handlers),
    ("match _:\n {}", lambda first: first.cases),
    ("_({})", lambda first: first.value.keywords),
    ("[_ {}]", lambda first: getattr(first.value, "generators", [])),
)
"""Where code can stand, and what it is there: a statement, an expression, an exception handler, a case, a
keyword argument, a loop of a comprehension."""
_KINDS = (ast.stmt, ast.expr, ast.keyword, ast.comprehension, ast.ExceptHandler, ast.match_case)
_PAIRED = (ast.Compare, ast.Dict, ast.arguments)
"""Their items do not go alone: each belongs to one of a second list."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """A node and where it hangs."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None

    def put(self, nodes: list[ast.AST]) -> None:
        """Hang nodes where the node is."""
        if self.index is not None:
            getattr(self.parent, self.field)[self.index : self.index + 1] = nodes
        else:
            (new,) = nodes
            setattr(self.parent, self.field, new)


def mutated(text: str, name: str, operation: str) -> str:
    """Return the text of a file after an operation in the place of this name.

    Code is compared as a syntax tree, so its format does not matter. `if late:` names the block with this
    head. The module's statement around it loses its comments. Raise DoesNotFit unless the code is there once.
    """
    tree, (first, last) = changed(text, name, operation)
    lines = text.splitlines(keepends=True)
    lines[first:last] = [f"{ast.unparse(tree)}\n"]
    return "".join(lines)


def changed(text: str, name: str, operation: str) -> tuple[ast.Module, tuple[int, int]]:
    """Return what `mutated` writes as a syntax tree, and the lines that it replaces. Raise DoesNotFit."""
    spans = spans_of(text).get(name, ())
    if len(spans) != 1:
        raise DoesNotFit(f"{name} is there {len(spans)} times")
    ((first, last),) = spans
    tree = ast.parse("".join(text.splitlines(keepends=True)[first:last]))
    verb, _, code = operation.partition(" ")
    old, arrow, new = code.partition(" => ")
    spot = _only(next(node for known, node in places(tree) if known == name), old)
    match verb, arrow:
        case "drop", "" if spot.index is not None and not isinstance(spot.parent, _PAIRED):
            spot.put([ast.Pass()] if isinstance(spot.node, ast.stmt) else [])
        case "swap", " => ":
            spot.put(_instead(spot.node, new))
        case _:
            raise DoesNotFit(f"{operation} is not possible")
    return tree, (first, last)


def _only(place: ast.AST, code: str) -> _Spot:
    """Return where code stands in its place. A statement counts, not the expression that it consists of."""
    wanted = {(type(node), _shape(node)) for node in _readings(code)}
    kinds = tuple(kind for kind, _ in wanted)
    found = [
        spot
        for spot in _spots(place)
        if isinstance(spot.node, kinds)
        and not isinstance(spot.parent, ast.Expr)
        and (type(spot.node), _shape(spot.node)) in wanted
    ]
    if len(found) != 1:
        raise DoesNotFit(f"{code} is there {len(found)} times")
    return found[0]


def _spots(node: ast.AST) -> Iterator[_Spot]:
    for field, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield _Spot(child, node, field, index)
                yield from _spots(child)


def _readings(code: str) -> Iterator[ast.AST]:
    for frame, read in _FRAMES:
        with suppress(SyntaxError):
            match ast.parse(frame.format(f"{code} pass" if code.endswith(":") else code)).body:
                case [first]:
                    yield from read(first)


def _instead(node: ast.AST, code: str) -> list[ast.AST]:
    """Return what code is in the place of a node: nodes of its kind. A head gets what stood in the block."""
    if isinstance(node, ast.stmt) and not code.endswith(":"):
        return list(ast.parse(code).body)
    kind = next(kind for kind in _KINDS if isinstance(node, kind))
    new = next((reading for reading in _readings(code) if isinstance(reading, kind)), None)
    if new is None:
        raise DoesNotFit(f"{code} can't stand there")
    for block in _BLOCKS if code.endswith(":") else ():
        if isinstance(getattr(node, block, None), list):
            setattr(new, block, getattr(node, block))
    return [new]


def _shape(node: ast.AST) -> str:
    """Return a node as text, a block without what stands in it."""
    head = copy.copy(node)
    for block in _BLOCKS:
        if isinstance(getattr(node, block, None), list):
            setattr(head, block, [])
    return ast.dump(head)
