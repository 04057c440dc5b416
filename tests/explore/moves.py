"""The registry of moves: what can happen in a history, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.explore.play import Play

Change = Callable[["Play", str, str], None]
"""What a move does: it gets the name of a node that exists, and one of its values."""


@dataclass(frozen=True, slots=True)
class Move:
    """One move. `weight` is how often it is drawn, `values` are what it can be drawn with, simplest first."""

    name: str
    family: str
    weight: int
    values: tuple[str, ...]
    on_node: bool
    change: Change


MOVES: dict[str, Move] = {}


def move(
    family: str, weight: int = 1, *, values: tuple[str, ...] = ("",), on_node: bool = True
) -> Callable[[Change], Change]:
    """Register a function as the move of its name, with spaces for underscores."""

    def register(change: Change) -> Change:
        name = change.__name__.strip("_").replace("_", " ")
        if name in MOVES:
            raise ValueError(f"two moves are called {name!r}")
        MOVES[name] = Move(name, family, weight, values, on_node, change)
        return change

    return register
