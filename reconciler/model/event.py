"""What sources say about a node, and the maintenance events that come of it.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

REQUEST = "request"
"""The source of requests in an annotation. A request names the drain, and reports no start."""


class Kind(StrEnum):
    """What the platform does to the VM."""

    FREEZE = "Freeze"
    LIVE_MIGRATION = "LiveMigration"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"
    PREEMPT = "Preempt"
    TERMINATE = "Terminate"
    REBALANCE = "Rebalance"
    UNKNOWN = "Unknown"

    @property
    def is_pause(self) -> bool:
        """Whether the VM only stands still for a while and keeps its memory."""
        return self in (Kind.FREEZE, Kind.LIVE_MIGRATION)

    @property
    def severity(self) -> int:
        """How much it costs a workload, compared with the other kinds: more is worse."""
        return _BY_SEVERITY.index(self)


_BY_SEVERITY = (
    Kind.UNKNOWN,
    Kind.REBALANCE,
    Kind.FREEZE,
    Kind.LIVE_MIGRATION,
    Kind.REBOOT,
    Kind.REDEPLOY,
    Kind.TERMINATE,
    Kind.PREEMPT,
)


class Status(StrEnum):
    """How far the platform is. Azure never reports the end of an event: the event disappears."""

    SCHEDULED = "Scheduled"
    STARTED = "Started"


class Initiator(StrEnum):
    """Who wants the event: the platform, or a user of the subscription."""

    PLATFORM = "Platform"
    USER = "User"


@dataclass(frozen=True, slots=True)
class PlatformPlan:
    """Maintenance announced weeks ahead, some time from `not_before` to `until`; moments are UTC.

    While `offered`, and from `offer_start` to `offer_end`, the platform lets us start it ourselves. The
    source's settings say how long before `not_before` it may ask for a drain at the earliest (`ahead`), and
    whether its offers are used (`accept`).
    """

    until: datetime | None = None
    offered: bool = False
    offer_start: datetime | None = None
    offer_end: datetime | None = None
    ahead: timedelta = timedelta()
    accept: bool = False

    def open_at(self, now: datetime) -> bool:
        """Whether we may start it at `now`."""
        begun = self.offer_start is None or self.offer_start <= now
        return self.offered and begun and (self.offer_end is None or now < self.offer_end)


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that one source says is going to happen to one node's VM.

    `not_before` is aware, UTC. `date_unreadable` means that a date was given and could not be read.
    `duration` None means that it is unknown. `resources` are the VMs that the event names, as the source
    spells them. `plan` is set where it is not at hand but planned weeks ahead. `condition` is set where the
    event is a node condition that the settings name, and `since` then says when it came true.
    """

    source: str
    kind: Kind
    status: Status
    not_before: datetime | None = None
    duration: timedelta | None = None
    id: str = ""
    description: str = ""
    initiator: Initiator | None = None
    resources: tuple[str, ...] = ()
    date_unreadable: bool = False
    condition: str = ""
    since: datetime | None = None
    plan: PlatformPlan | None = None


class Answer(StrEnum):
    """What a source can say of a node. Unknown is never 'no event'."""

    EVENT = "event"
    NO_EVENT = "no event"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reading:
    """One source's answer for one node.

    `as_of` is the last heartbeat of whoever wrote it, and `stale_after` how long after it the answer is
    believed; both are None where the source has no heartbeat. A later stage, which knows `now`, makes an
    older answer unknown. `installed` is False if nothing on this node can answer: that is reported once for
    the cluster, not as an unknown for each node. `tells_one` says that of several events the source shows
    only one: what it does not show may still be there.
    """

    source: str
    answer: Answer
    signals: tuple[Signal, ...] = ()
    because: str = ""
    as_of: datetime | None = None
    installed: bool = True
    tells_one: bool = False
    stale_after: timedelta | None = None

    @property
    def believed_until(self) -> datetime | None:
        """The last moment at which the answer is believed, None where it does not age."""
        if self.as_of is None or self.stale_after is None:
            return None
        return self.as_of + self.stale_after


@dataclass(frozen=True, slots=True)
class MaintenanceEvent:
    """One event of one node, joined from the signals that report it.

    The most detailed word wins; `disagreements` says where the sources differ, in words.
    """

    node: str
    kind: Kind
    status: Status
    not_before: datetime | None
    duration: timedelta | None
    ids: tuple[str, ...]
    description: str
    initiator: Initiator | None
    sources: tuple[str, ...]
    resources: tuple[str, ...] = ()
    date_unreadable: bool = False
    condition: str = ""
    since: datetime | None = None
    disagreements: tuple[str, ...] = ()
    plan: PlatformPlan | None = None
