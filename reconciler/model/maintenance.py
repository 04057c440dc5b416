"""A maintenance as people look it up: one event of one node, what became of it, and why it waits.

It is a view of the plan of a pass. Nothing is decided by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from reconciler.model.actions import ActionName
from reconciler.model.event import Kind
from reconciler.model.node import Condition
from reconciler.model.record import KnownEvent

if TYPE_CHECKING:
    from reconciler.model.ports import ClusterWriter


class Stage(StrEnum):
    """How far a maintenance is, as a NodeMaintenance's `status.state` shows it: the values stay."""

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
    GONE = "Gone"


@dataclass(frozen=True, slots=True)
class Maintenance:
    """One event of one node; moments are UTC, and `finished` is set once it is over.

    `state` is a Stage, or what another version of this program wrote.

    `due` is when the next step follows (a window opens, or the deadline), where that is known.
    `reason` has the names of the checks that hold it, `message` says the same in words.
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
        """The event by which it is recognized."""
        return KnownEvent(self.kind, self.not_before, self.ids, self.sources, self.condition)


@dataclass(frozen=True, slots=True)
class MaintenanceWrite:
    """One object to create, to change (`exists`), or, where `wanted` is None, to delete. It is a Publication.

    `prefix` names the installation: two of them in one cluster leave each other's objects alone.
    """

    name: str
    node: str
    prefix: str
    wanted: Maintenance | None
    exists: bool = False

    @property
    def action(self) -> ActionName:
        """Its name in reports and outcomes."""
        return ActionName.NODE_MAINTENANCE

    def send(self, writer: ClusterWriter) -> None:
        """Write it; raises ClusterError and LockLost."""
        writer.write_maintenance(self)
