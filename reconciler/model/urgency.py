"""Urgency: the order in which nodes get places, slots and turns. This is its one place."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from reconciler.model.event import Kind
from reconciler.model.moments import to_text

_NEVER = datetime.max.replace(tzinfo=UTC)


class Urgency(Struct, frozen=True):
    """How soon a node has to be drained for its most urgent event.

    An event that has started comes first, because its VM may go at any moment. Then come dates that can't be
    read, which may mean any moment too, then deadlines (`notBefore` minus the lead time, UTC), then events
    without a date. Of two equal ones the more disruptive kind comes first.
    """

    kind: Kind = Kind.UNKNOWN
    deadline: datetime | None = None
    started: bool = False
    date_unreadable: bool = False

    @property
    def key(self) -> tuple[bool, bool, datetime, int]:
        """The sort key: what is smaller comes first."""
        unreadable = self.date_unreadable and not self.started
        deadline = None if unreadable else self.deadline
        return (not self.started, not unreadable, deadline or _NEVER, -self.kind.severity)

    def __str__(self) -> str:
        """Return it as text, such as `deadline 2026-11-21T13:45:00Z`."""
        if self.started:
            return f"{self.kind} has started"
        if self.date_unreadable:
            return f"{self.kind} with a date that can't be read"
        if self.deadline is not None:
            return f"deadline {to_text(self.deadline)}"
        return f"{self.kind} without a date"


LEAST_URGENT = Urgency()
"""Of a node without an event that requires a drain."""
