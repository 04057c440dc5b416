"""When a drain for one event may start: not before its earliest start, and in time until its latest.

The latest start is the last moment that windows and freezes allow before the deadline. A drain starts not
long before it (law 15), because a node that stands empty serves nobody, and its place is free for others.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.calendar.outlook import Outlook
from reconciler.model.event import MaintenanceEvent
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import shifted, to_text
from reconciler.model.schedule import StartTimes
from reconciler.model.values import replace
from reconciler.settings.policies import EventPolicy, OutsideWindow, Start

NEAR = timedelta(hours=1)
"""A drained node is kept for a start that comes so soon: its pods would come back only to go again."""


def start_times(
    event: MaintenanceEvent, policy: EventPolicy, outlook: Outlook, *, taken: bool = False
) -> StartTimes:
    """Return when a drain for the event may start on a node with this outlook (now is the outlook's).

    `taken` says that the platform lets us begin its maintenance now, and the settings accept it.
    """
    if event.not_before is None:
        return StartTimes(EARLIEST)
    deadline = shifted(event.not_before, -policy.lead_time)
    at_once = policy.outside_window is OutsideWindow.IMMEDIATELY
    if event.started or event.date_unreadable or deadline <= outlook.now:
        return StartTimes(EARLIEST, deadline, deadline)
    times = StartTimes(EARLIEST, deadline, deadline) if at_once else _in_windows(deadline, policy, outlook)
    # A plan weeks ahead is no news that leaves no time.
    on_sight = event.at_once or (at_once and event.plan is None)
    early = policy.start is Start.EARLY or (policy.start is None and (event.degraded or _we_decide(policy)))
    if on_sight or taken or early:
        return times
    if times.latest is None:
        # No start is in time. The calendar alone says when it may start.
        return replace(times, earliest=deadline)
    return replace(times, earliest=shifted(times.latest, -_ahead(event, policy)))


def _we_decide(policy: EventPolicy) -> bool:
    """Whether the maintenance begins when we want it to, so that an early drain ends early."""
    return policy.acknowledge or policy.replace


def _ahead(event: MaintenanceEvent, policy: EventPolicy) -> timedelta:
    if event.plan is None or event.plan.ahead is None:
        return policy.ahead
    # A source counts it from the date of the event, not from the deadline.
    return max(event.plan.ahead - policy.lead_time, timedelta())


def _in_windows(deadline: datetime, policy: EventPolicy, outlook: Outlook) -> StartTimes:
    """Return the latest start that windows and freezes allow, and why there is none in time."""
    found = outlook.last_start(deadline, policy.lead_time)
    if found is not None:
        return StartTimes(EARLIEST, found[0], deadline)
    if policy.outside_window is OutsideWindow.NEVER:
        never = f"no window opens before {to_text(deadline)}, and outsideWindow is Never"
        return StartTimes(
            EARLIEST, None, deadline, never=never, remedy="a window before it, or outsideWindow: AtDeadline,"
        )
    if outlook.unfrozen(deadline) != deadline:
        never = f"an absolute freeze covers the deadline {to_text(deadline)}"
        return StartTimes(
            EARLIEST,
            None,
            deadline,
            never=never,
            remedy="a freeze that is not absolute, or leaves a gap before,",
        )
    return StartTimes(EARLIEST, deadline, deadline)
