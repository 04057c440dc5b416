"""What happened in a simulation, in order, for tests and for the demo."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field


class Actor(StrEnum):
    """Who did it."""

    US = "us"
    PLATFORM = "platform"
    CLUSTER = "cluster"
    SOMEBODY = "somebody"


class Happening(Struct, frozen=True):
    """One thing that happened; `subject` is a pod or budget. `node` and `subject` may be empty."""

    at: datetime
    actor: Actor
    what: str
    node: str = ""
    subject: str = ""
    detail: str = ""

    def __str__(self) -> str:
        """Return it as one line; equal happenings give equal lines."""
        words = (self.at.isoformat(), self.actor, self.what, self.node, self.subject, self.detail)
        return " ".join(word for word in words if word)


class Log(Struct):
    """Every happening so far; each of `listeners` is called with each new one."""

    happenings: list[Happening] = field(default_factory=list)
    listeners: list[Callable[[Happening], None]] = field(default_factory=list)

    def write(self, happening: Happening) -> None:
        """Add a happening and call the listeners."""
        self.happenings.append(happening)
        for listener in self.listeners:
            listener(happening)

    def of(self, actor: Actor, *whats: str) -> tuple[Happening, ...]:
        """Return what an actor did, limited to the names in `whats` if there are any."""
        return tuple(
            one for one in self.happenings if one.actor is actor and (not whats or one.what in whats)
        )
