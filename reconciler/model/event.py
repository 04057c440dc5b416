"""What sources report about a node, and the maintenance events that result.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass  # noqa: TID251 - the agent imports this file
from datetime import datetime, timedelta
from enum import StrEnum

REQUEST = "request"
"""The source of requests in an annotation."""


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
        """Whether the VM only pauses and keeps its memory."""
        return self in (Kind.FREEZE, Kind.LIVE_MIGRATION)

    @property
    def takes_the_vm(self) -> bool:
        """Whether the VM does not come back: the platform deletes it, or stops it for good."""
        return self in (Kind.PREEMPT, Kind.TERMINATE)

    @property
    def severity(self) -> int:
        """How disruptive the kind is, compared with the others: more is worse."""
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
    """The status of an event at the platform.

    Azure never reports the end of an event: the event disappears.
    """

    SCHEDULED = "Scheduled"
    STARTED = "Started"


class Initiator(StrEnum):
    """Who started the event: the platform, or a user of the subscription."""

    PLATFORM = "Platform"
    USER = "User"


class WaitForNotice(StrEnum):
    """Whether a plan that names days, but no moment, waits for the notice that comes minutes before."""

    AUTO = "Auto"
    """Only on a node with a source that reports such notices."""

    ALWAYS = "Always"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class PlatformPlan:
    """Maintenance announced weeks ahead, at some time from `not_before` to `until`; moments are UTC.

    While `offered`, and from `offer_start` to `offer_end`, the platform lets us start it ourselves: `asks`
    says in words who is asked. From the source's settings: how long before `not_before` it may require a
    drain (`ahead`; None: as for other events), whether its offers are used (`accept`), and whether it waits
    for a notice (`waits`).
    """

    until: datetime | None = None
    offered: bool = False
    offer_start: datetime | None = None
    offer_end: datetime | None = None
    asks: str = ""
    ahead: timedelta | None = None
    accept: bool = False
    waits: WaitForNotice = WaitForNotice.NEVER

    def open_at(self, now: datetime) -> bool:
        """Whether we may start it at `now`."""
        begun = self.offer_start is None or self.offer_start <= now
        return self.offered and begun and (self.offer_end is None or now < self.offer_end)


@dataclass(frozen=True, slots=True)
class Signal:
    """One statement of one source about what will happen to one node's VM.

    `not_before` is aware, UTC. `date_unreadable` means that a date was given and could not be read.
    `duration` None means that it is unknown. `resources` are the VMs that the event names, as the source
    spells them. `plan` is set if it is not imminent but planned weeks ahead. `condition` is set if the
    event is a node condition that the settings name; `since` is then when it became True. `degraded`: the
    hardware under the VM fails, so it may be lost before its date. `replaces`: it asks itself for a new
    machine, so that the node is drained and its machine deleted, whatever the policy of its kind says.
    `reports_start` is that of its source, which a pass fills in.
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
    degraded: bool = False
    replaces: bool = False
    reports_start: bool = True


class Answer(StrEnum):
    """The possible answers of a source about a node. Unknown is never 'no event'."""

    EVENT = "event"
    NO_EVENT = "no event"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reading:
    """One source's answer for one node.

    `as_of` is the last heartbeat of its writer, and `stale_after` is how long the answer is valid after it;
    both are None if the source has no heartbeat. A later stage, which knows `now`, makes an older answer
    unknown. `installed` is False if nothing on this node can answer: that is reported once for the cluster,
    not as an unknown for each node. `abandoned` says why nothing updates the answer any more, which still
    counts, and what a person can do. `tells_one` means that the source shows only one of several events: an
    event that it does not show may still be there.
    """

    source: str
    answer: Answer
    signals: tuple[Signal, ...] = ()
    because: str = ""
    as_of: datetime | None = None
    installed: bool = True
    abandoned: str = ""
    tells_one: bool = False
    stale_after: timedelta | None = None

    @property
    def believed_until(self) -> datetime | None:
        """The last moment at which the answer is valid, None if it does not age."""
        if self.as_of is None or self.stale_after is None:
            return None
        return self.as_of + self.stale_after


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an event takes place, as sources say it. `degraded`: the hardware under the VM fails."""

    initiator: Initiator | None = None
    description: str = ""
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class MaintenanceEvent:
    """One event of one node, joined from the signals that report it.

    The most detailed signal wins; `disagreements` says in words where the sources differ. `at_once`: a
    request without a date asks for it now, whatever date another source gives. `replaces`: a signal asks
    for a new machine. `reports_start`: a source of it says when the maintenance has started. Without one,
    the maintenance begins once the node is drained.
    """

    node: str
    kind: Kind
    status: Status
    not_before: datetime | None
    duration: timedelta | None
    ids: tuple[str, ...]
    sources: tuple[str, ...]
    cause: Cause = Cause()
    date_unreadable: bool = False
    condition: str = ""
    since: datetime | None = None
    disagreements: tuple[str, ...] = ()
    plan: PlatformPlan | None = None
    at_once: bool = False
    replaces: bool = False
    reports_start: bool = True

    @property
    def started(self) -> bool:
        """Whether the platform has started it, so that it may take the node now.

        A condition that the settings name has this status from its first moment, and says nothing about the
        end of the node.
        """
        return self.status is Status.STARTED and self.reports_start
