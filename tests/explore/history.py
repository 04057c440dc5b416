"""What a history is made of: where it begins, its steps, the moves by name, and a law that breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.explore.play import Play


class Broken(BaseException):
    """A law does not hold; `law` is its number or name.

    It is no Exception, because the program's boundaries would catch it where a hook raises it.
    """

    def __init__(self, law: str, text: str) -> None:
        super().__init__(f"law {law}: {text}")
        self.law = law


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a history begins.

    `cloud` is azure or aws. `provider` is what owns the machines of the nodes, empty for nothing. `settings`
    are the lines of the settings file. `pods` are the pods besides a Deployment with one pod per node.
    """

    nodes: int = 3
    cloud: str = "azure"
    provider: str = ""
    settings: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, and the minutes that pass after it.

    `what` is the name of a move, `on` the position of its node among all nodes by name, `value` one of the
    move's values.
    """

    what: str
    on: int = 0
    value: str = ""
    then: int = 0

    def __repr__(self) -> str:
        """Return the call without what has its default value."""
        words = [repr(self.what)]
        words += [f"on={self.on}"] if self.on else []
        words += [f"value={self.value!r}"] if self.value else []
        words += [f"then={self.then}"] if self.then else []
        return f"Step({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class History:
    """A scene and its steps; `seed` decides which messages of watches are lost, doubled or late."""

    scene: Scene
    steps: tuple[Step, ...]
    seed: int = 0

    def with_steps(self, steps: tuple[Step, ...]) -> History:
        """Return the history with other steps."""
        return replace(self, steps=steps)


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
