"""The answers of a polled source's service, and when to query it again.

`S` is the source's scope, that is, what one request answers for (a region, a scale set); scopes can be
compared and sorted. `F` is one fact about one VM, as the source reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct


class Sortable(Protocol):
    """What a scope can do beside being equal and hashed."""

    def __lt__(self, other: Any, /) -> bool: ...


S = TypeVar("S", bound=Sortable)
F = TypeVar("F")


class Listing(Struct, Generic[S, F], frozen=True):
    """The result of one request.

    `found` are the facts, each with the name of its VM. `seen` are all VMs in the answer, also those without
    facts. `problem` is set if there was no complete answer. `wait` is the pause before the next request that
    the service asks for, in seconds. `asked` False: the request was not sent, because the service asked
    earlier ones to wait, or because the pass has sent enough. `silent` are the VMs of which the answer has
    the name only; each is then queried alone. `note` is what people should know about the request although it
    has an answer.
    """

    scope: S
    found: tuple[tuple[str, F], ...] = ()
    seen: frozenset[str] = frozenset()
    problem: str = ""
    wait: float | None = None
    asked: bool = True
    silent: frozenset[str] = frozenset()
    note: str = ""


class Alone(Struct, frozen=True):
    """A VM that is queried alone: last at `asked`, next at `again` (UTC).

    `asked` is None before the first answer. With a `problem` nothing is known about the VM.
    """

    name: str
    again: datetime
    asked: datetime | None = None
    problem: str = ""


class ScopeAnswer(Struct, Generic[S, F], frozen=True, dict=True):
    """The last answer for one scope. It was queried at `asked` and is valid until `again` (UTC).

    `unseen` are VMs of managed nodes that are missing in the answer. `alone` are those of which it has the
    name only, sorted by name; `found` has what they said alone, too. With a `problem` nothing is known about
    any VM in the scope.
    """

    scope: S
    asked: datetime
    again: datetime
    found: tuple[tuple[str, F], ...] = ()
    unseen: tuple[str, ...] = ()
    problem: str = ""
    alone: tuple[Alone, ...] = ()

    @cached_property
    def facts(self) -> Mapping[str, tuple[F, ...]]:
        """What was found, by VM."""
        grouped = groupby(sorted(self.found, key=itemgetter(0)), itemgetter(0))
        return {name: tuple(fact for _, fact in group) for name, group in grouped}


class Memory(Struct, Generic[S, F], frozen=True):
    """All valid answers, sorted by scope. `paused` are scopes whose requests wait until a moment (UTC)."""

    answers: tuple[ScopeAnswer[S, F], ...] = ()
    paused: tuple[tuple[S, datetime], ...] = ()

    def of(self, scope: S) -> ScopeAnswer[S, F] | None:
        """Return the answer for a scope, or None if it was never queried."""
        return next((answer for answer in self.answers if answer.scope == scope), None)


AnyMemory: TypeAlias = Memory[Any, Any]
"""The memory of any source. Only the source itself knows the types in it."""
