"""The policy for a kind of event or a condition, and the defaults for each kind."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from msgspec import Struct

from reconciler.model.event import Kind


class OutsideWindow(StrEnum):
    """What happens to an event while no window is open."""

    NEVER = "Never"
    """No drain starts outside a window, even at the deadline."""

    AT_DEADLINE = "AtDeadline"
    """The drain waits for a window that opens before the deadline, else it starts at the deadline."""

    IMMEDIATELY = "Immediately"
    """The drain starts at once."""


class Start(StrEnum):
    """When a drain starts for an event with a date."""

    LATE = "Late"
    """Shortly before the latest start: no node is empty for hours, and its place stays free for others."""

    EARLY = "Early"
    """As soon as windows and budget allow it."""


class Treatment(StrEnum):
    """What happens to a pod that loses data or does not come back when it is evicted."""

    KEEP = "Keep"
    """The pod stays. The other pods of the node are drained."""

    EVICT = "Evict"


class ApprovalMissing(StrEnum):
    """What happens at the deadline if nobody has approved the drain."""

    HOLD = "Hold"
    """No drain starts without an approval."""

    PROCEED = "Proceed"
    """From the deadline on, the drain starts without an approval."""


class UserInitiated(StrEnum):
    """What to do about an event that a user of the subscription started."""

    REPORT = "Report"
    DRAIN = "Drain"


class EventPolicy(Struct, frozen=True):
    """What to do about one kind of event, or one node condition, on one node.

    `min_duration`: shorter events are ignored, events of unknown duration are not. `lead_time`: the
    deadline for the start of a drain, before `not_before`. `for_`: how long a condition must have been
    True (0 for events). `acknowledge`: ask the platform to start the event once all its VMs are drained.
    `replace`: delete the machine of the drained node, so that a new one comes. `start`: when a drain starts
    for an event with a date; None leaves it to who ends the maintenance. `ahead`: how long before its latest
    start a late drain may start. `approval`: a person has to approve the drain; `approval_missing`: what
    happens at the deadline if nobody has.
    """

    drain: bool
    min_duration: timedelta = timedelta()
    lead_time: timedelta = timedelta()
    outside_window: OutsideWindow = OutsideWindow.AT_DEADLINE
    empty_dir: Treatment = Treatment.KEEP
    unmanaged_pods: Treatment = Treatment.KEEP
    for_: timedelta = timedelta()
    acknowledge: bool = False
    replace: bool = False
    start: Start | None = None
    ahead: timedelta = timedelta(hours=1)
    approval: bool = False
    approval_missing: ApprovalMissing = ApprovalMissing.HOLD


_QUARTER = timedelta(
    minutes=15
)  # Azure's usual notice, so the drain starts as soon as the event is announced

DEFAULTS: dict[Kind, EventPolicy] = {
    Kind.FREEZE: EventPolicy(drain=False, lead_time=_QUARTER),
    Kind.LIVE_MIGRATION: EventPolicy(
        drain=False, lead_time=timedelta(minutes=10), outside_window=OutsideWindow.NEVER
    ),
    Kind.REBOOT: EventPolicy(drain=True, lead_time=_QUARTER),
    # The temporary disk is lost with the VM, so keeping a pod for its emptyDir saves nothing.
    Kind.REDEPLOY: EventPolicy(drain=True, lead_time=_QUARTER, empty_dir=Treatment.EVICT),
    Kind.PREEMPT: EventPolicy(
        drain=True,
        outside_window=OutsideWindow.IMMEDIATELY,
        empty_dir=Treatment.EVICT,
        unmanaged_pods=Treatment.EVICT,
    ),
    Kind.TERMINATE: EventPolicy(
        drain=True, lead_time=_QUARTER, empty_dir=Treatment.EVICT, unmanaged_pods=Treatment.EVICT
    ),
    Kind.REBALANCE: EventPolicy(drain=False),
    Kind.UNKNOWN: EventPolicy(drain=False),
}

CONDITION_DEFAULT = EventPolicy(drain=True)
"""The default for a condition that the settings name: it drains the node."""
