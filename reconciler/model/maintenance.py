"""A maintenance as people look it up: one event of one node, its state, and why it waits.

It is a view of the plan of a pass. No decision depends on it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from reconciler.model.event import Kind
from reconciler.model.node import Condition
from reconciler.model.record import KnownEvent


class Stage(StrEnum):
    """The stage of a maintenance, as in `status.state` of a NodeMaintenance: the values never change."""

    LET_PASS = "LetPass"
    HELD = "Held"
    DISMISSED = "Dismissed"
    WAITING = "Waiting"
    CORDONED = "Cordoned"
    DRAINING = "Draining"
    DRAINED = "Drained"
    STARTED = "Started"
    SETTLING = "Settling"
    UNREADABLE = "Unreadable"
    DONE = "Done"
    LATE = "Late"
    MISSED = "Missed"
    CANCELLED = "Cancelled"
    GONE = "Gone"


class Maintenance(Struct, frozen=True):
    """One event of one node; moments are UTC, and `finished` is set once it is over.

    `state` is a Stage, or what another version of this program wrote.

    `due` is the time of the next step (a window opens, or the deadline), if it is known. `reason` has the
    names of the checks that hold it, `message` gives the same in words.
    """

    name: str
    node: str
    uid: str
    kind: Kind
    state: str
    ids: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    condition: str = ""
    not_before: datetime | None = None
    duration: timedelta | None = None
    description: str = ""
    due: datetime | None = None
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    finished: datetime | None = None

    @property
    def event(self) -> KnownEvent:
        """The event that identifies it."""
        return KnownEvent(self.kind, self.not_before, self.ids, self.sources, self.condition)
