"""What the service behind a polled source said, and when it may be asked again.

`S` is the source's scope, that is, what one request answers for (a region, a scale set); scopes can be
compared and sorted. `F` is one fact about one VM, as the source reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeAlias, TypeVar


class Sortable(Protocol):
    """What a scope can do beside being equal and hashed."""

    def __lt__(self, other: Any, /) -> bool: ...


S = TypeVar("S", bound=Sortable)
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Listing(Generic[S, F]):
    """What one request came to.

    `found` are the facts, each with the name of its VM. `seen` are the VMs whose state the answer told, those
    without facts too, if the service tells of them. `problem` is set where there was no whole answer. `wait`
    is the service's wish in seconds. `asked` False means that the request was not sent, because others had
    to wait already.
    """

    scope: S
    found: tuple[tuple[str, F], ...] = ()
    seen: frozenset[str] = frozenset()
    problem: str = ""
    wait: float | None = None
    asked: bool = True


@dataclass(frozen=True, slots=True)
class ScopeAnswer(Generic[S, F]):
    """The answer for one scope that was `asked` for last, in force until it is asked for `again` (UTC).

    `unseen` are VMs behind managed nodes that the answer should have told of and did not. With a `problem`
    nothing is known of any VM in the scope.
    """

    scope: S
    asked: datetime
    again: datetime
    found: tuple[tuple[str, F], ...] = ()
    unseen: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Memory(Generic[S, F]):
    """All answers in force, sorted by scope; until `not_before` (UTC) the service is not asked at all."""

    answers: tuple[ScopeAnswer[S, F], ...] = ()
    not_before: datetime | None = None

    def of(self, scope: S) -> ScopeAnswer[S, F] | None:
        """Return the answer for a scope, None where it was never asked for."""
        return next((one for one in self.answers if one.scope == scope), None)


AnyMemory: TypeAlias = Memory[Any, Any]
"""The memory of a source that is known by its name alone: only that source knows the types in it."""
