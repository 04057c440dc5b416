"""NodeMaintenance objects: what one says, and the port through which they are read and written."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Protocol

from msgspec import Struct

from reconciler.model.node import Condition
from reconciler.model.outcome import ActionKind
from reconciler.model.record import KnownEvent
from reconciler.model.tasks import Clients, Port

OBJECTS = "NodeMaintenance objects"
"""What people read of all of them."""

MISSED = "MaintenanceMissed"
LATE = "MaintenanceLate"
"""Their conditions beside those of nodes, which they have only when they are True."""

UPDATE = ActionKind("nodemaintenance", "update its NodeMaintenances")


class Stage(StrEnum):
    """The stage of a maintenance. The values never change."""

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

    `event` identifies it. `state` is a Stage, or what another version of this program wrote.

    `due` is the time of the next step (a window opens, or the deadline), if it is known. `reason` has the
    names of the checks that hold it, `message` gives the same in words.
    """

    name: str
    node: str
    uid: str
    event: KnownEvent
    state: str
    duration: timedelta | None = None
    description: str = ""
    due: datetime | None = None
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    finished: datetime | None = None


class Maintenances(Protocol):
    """Reads and writes the objects. Both methods raise ClusterError, and a write also LockLost."""

    def read(self, prefix: str) -> tuple[Maintenance, ...] | None:
        """Return the objects of the installation with this prefix; None if the CRD is not installed."""

    def write(self, write: MaintenanceWrite) -> None:
        """Create, change or delete an object; deleting one that is gone succeeds."""


MAINTENANCES: Port[Maintenances] = Port("maintenances", f"this process reads and writes no {OBJECTS}")


class MaintenanceWrite(Struct, frozen=True):
    """One object to create, to change (`exists`), or to delete (`wanted` is None). It is a Publication.

    `prefix` names the installation: two installations in one cluster ignore each other's objects.
    """

    name: str
    node: str
    prefix: str
    wanted: Maintenance | None
    exists: bool = False

    action: ClassVar[ActionKind] = UPDATE

    def send(self, clients: Clients) -> None:
        """Write the object; raises ClusterError and LockLost."""
        MAINTENANCES.of(clients).write(self)
