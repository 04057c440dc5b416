"""What each kind of event means unless the settings say otherwise, and what they say once all is merged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from reconciler.model.event import Kind


class OutsideWindow(StrEnum):
    """What happens to an event while no window is open."""

    NEVER = "Never"
    """No drain starts outside a window, whatever the deadline."""

    AT_DEADLINE = "AtDeadline"
    """A window that opens before the deadline is waited for; else the drain starts at the deadline."""

    IMMEDIATELY = "Immediately"
    """The drain starts on sight."""


class Treatment(StrEnum):
    """What becomes of a pod whose eviction costs something."""

    KEEP = "Keep"
    """The pod stays, and keeps only itself."""

    EVICT = "Evict"


class UserInitiated(StrEnum):
    """What an event means that a user of the subscription started."""

    REPORT = "Report"
    DRAIN = "Drain"


@dataclass(frozen=True, slots=True)
class EventPolicy:
    """What one kind of event, or one node condition, means on one node.

    `min_duration`: a shorter event is let pass, one of unknown duration is not. `lead_time`: how long
    before `not_before` a drain has to start at the latest. `for_`: how long a condition must have been
    True (nothing for events). `acknowledge`: the platform is told to start it once all of its VMs are
    drained. `replace`: the drained node's machine is deleted, so that a new one comes.
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


_QUARTER = timedelta(minutes=15)  # Azure's usual notice: such a drain starts as soon as it is told of

DEFAULTS: dict[Kind, EventPolicy] = {
    Kind.FREEZE: EventPolicy(drain=False),
    Kind.LIVE_MIGRATION: EventPolicy(
        drain=False, lead_time=timedelta(minutes=10), outside_window=OutsideWindow.NEVER
    ),
    Kind.REBOOT: EventPolicy(drain=True, lead_time=_QUARTER),
    # The temporary disk is lost with the VM: to keep a pod for its emptyDir would save nothing.
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
"""A condition that the settings name asks for a drain: that is why it is named."""
