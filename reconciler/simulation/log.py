"""What happened in a simulation, in order: for tests that look back, and for whoever tells the story."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Actor(StrEnum):
    """Who did it."""

    US = "us"
    PLATFORM = "platform"
    CLUSTER = "cluster"
    SOMEBODY = "somebody"


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened: `node` empty where it is about none, `subject` the pod or budget if any."""

    at: datetime
    actor: Actor
    what: str
    node: str = ""
    subject: str = ""
    detail: str = ""

    def __str__(self) -> str:
        """Return it as one line, the same for the same happening."""
        words = (self.at.isoformat(), self.actor, self.what, self.node, self.subject, self.detail)
        return " ".join(word for word in words if word)


@dataclass(slots=True)
class Log:
    """Every happening so far; `listeners` hear each one as it is written."""

    happenings: list[Happening] = field(default_factory=list)
    listeners: list[Callable[[Happening], None]] = field(default_factory=list)

    def write(self, happening: Happening) -> None:
        """Add one and tell it."""
        self.happenings.append(happening)
        for listener in self.listeners:
            listener(happening)

    def of(self, actor: Actor, *whats: str) -> tuple[Happening, ...]:
        """Return what an actor did, or only what is named."""
        return tuple(
            one for one in self.happenings if one.actor is actor and (not whats or one.what in whats)
        )
