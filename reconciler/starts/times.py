"""The times of one event: when its drain may start, by its date, its policy and the calendar.

The deadline rule is here: a window decides when a drain may start, and the policy of the event decides what
happens while no window is open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from reconciler.calendar.occurrences import FOREVER
from reconciler.calendar.outlook import ANY_TIME, Outlook
from reconciler.model.event import Kind, MaintenanceEvent
from reconciler.model.instructions import Waiver
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import has_come, to_text
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent, Opening
from reconciler.model.schedule import Exemption, StartTimes
from reconciler.model.values import replace
from reconciler.settings.policies import EventPolicy, OutsideWindow, Start
from reconciler.settings.schema import Settings

SHORT_NOTICE = timedelta(minutes=15)
"""An event that is to be drained at once has no time to wait for a place this long before its date."""


NEAR = timedelta(hours=1)
"""A drained node is kept for a start that comes so soon: its pods would come back only to go again."""


def deadline_of(event: MaintenanceEvent, policy: EventPolicy) -> datetime | None:
    """Return the date of the event minus the lead time of its policy (UTC), None without a date."""
    return event.not_before - policy.lead_time if event.not_before else None


def start_times(
    event: MaintenanceEvent, policy: EventPolicy, outlook: Outlook, *, ends: bool = False, taken: bool = False
) -> StartTimes:
    """Return when a drain for the event may start on a node with this outlook (now is the outlook's).

    `ends` says that we can end it once the node is drained, so that no node stands empty until its date.
    `taken` says that the platform lets us begin its maintenance now, and the settings accept it.
    """
    deadline = deadline_of(event, policy)
    if deadline is None:
        return StartTimes(EARLIEST)
    at_once = policy.outside_window is OutsideWindow.IMMEDIATELY
    if event.started or event.date_unreadable or deadline <= outlook.now:
        return StartTimes(EARLIEST, deadline, deadline)
    times = StartTimes(EARLIEST, deadline, deadline) if at_once else _in_windows(deadline, policy, outlook)
    # A plan weeks ahead is no news that leaves no time.
    on_sight = event.at_once or (at_once and event.plan is None)
    early = policy.start is Start.EARLY or (policy.start is None and ends)
    if on_sight or taken or early:
        return times
    if times.latest is None:
        # No start is in time. The calendar alone says when it may start.
        return replace(times, earliest=deadline)
    return replace(times, earliest=times.latest - _ahead(event, policy))


def _ahead(event: MaintenanceEvent, policy: EventPolicy) -> timedelta:
    if event.plan is None or event.plan.ahead is None:
        return policy.ahead
    # A source counts it from the date of the event, not from the deadline.
    return max(event.plan.ahead - policy.lead_time, timedelta())


def _in_windows(deadline: datetime, policy: EventPolicy, outlook: Outlook) -> StartTimes:
    found = outlook.last_start(deadline, policy.lead_time)
    if found is not None:
        return StartTimes(EARLIEST, found[0], deadline)
    if policy.outside_window is OutsideWindow.NEVER:
        never = f"no window opens before {to_text(deadline)}, and outsideWindow is Never"
        return StartTimes(
            EARLIEST,
            None,
            deadline,
            never=never,
            remedy="add a window before it, or set outsideWindow: AtDeadline",
        )
    if outlook.unfrozen(deadline) != deadline:
        never = f"an absolute freeze covers the deadline {to_text(deadline)}"
        return StartTimes(
            EARLIEST, None, deadline, never=never, remedy="end the freeze before, or make it not absolute"
        )
    return StartTimes(EARLIEST, deadline, deadline)


def lost_from(
    event: MaintenanceEvent, policy: EventPolicy, exempt: Collection[Kind], spread: timedelta
) -> datetime | None:
    """Return the moment from which the node may be lost, as far as the dates tell; None if unknown.

    The lead time of the policy includes the `spread` of the clocks. For an event without a date, such as a
    request or a condition, the moment is unknown, unless its kind is `exempt`.
    """
    if event.started or event.date_unreadable:
        return EARLIEST
    if event.not_before is None:
        # A plan without a date is weeks ahead. An exempt event without a date may come at any moment.
        return EARLIEST if event.kind in exempt and event.plan is None else None
    if policy.outside_window is OutsideWindow.IMMEDIATELY:
        # Kinds with so little notice that each second counts, such as Preempt, have no lead time.
        return event.not_before - max(policy.lead_time, SHORT_NOTICE + spread)
    return event.not_before - policy.lead_time


def exemption(
    event: MaintenanceEvent,
    policy: EventPolicy,
    exempt: Collection[Kind],
    lost: datetime | None,
    waiver: Waiver | None = None,
) -> Exemption:
    """Return what the start of a drain for this event does without: nothing else says so.

    `exempt` are the kinds of `budget.exempt`. `lost` is from when on the node may be lost, None if that is
    not known, or no drain begins for the event yet. `waiver` is that of the person who began it, None without
    one.
    """
    if waiver is not None and waiver.now:
        # A slot is no matter of the node alone: a person who starts many nodes has no more of them.
        slots = lost if event.kind in exempt else None
        return Exemption(EARLIEST, EARLIEST, slots=slots, windows=EARLIEST, freezes=EARLIEST)
    taken = event.kind in exempt
    # With or without a place, such a node goes out of service.
    goes = lost if taken or event.started else None
    return Exemption(goes, goes, slots=lost if taken else None, windows=outside_from(event, policy))


def outside_from(event: MaintenanceEvent, policy: EventPolicy) -> datetime | None:
    """Return from when on a drain may start outside of windows (UTC), None if it may not."""
    if policy.outside_window is OutsideWindow.NEVER:
        return None
    if policy.outside_window is OutsideWindow.IMMEDIATELY:
        return EARLIEST
    if (event.started or event.date_unreadable) and not event.kind.is_pause:
        return EARLIEST
    return deadline_of(event, policy)


def exempt_beside(waiting: Iterable[tuple[JudgedEvent, StartTimes]]) -> Exemption:
    """Return what a start for these events of a node does without; each counts from its earliest start on."""
    return Exemption.of_all(
        replace(judged.exempt, windows=None)
        if times.earliest == FOREVER or judged.exempt.windows is None
        else replace(judged.exempt, windows=max(judged.exempt.windows, times.earliest))
        for judged, times in waiting
    )


def opening_of(
    event: MaintenanceEvent,
    policy: EventPolicy,
    node: Node,
    settings: Settings,
    now: datetime,
    *,
    offered: str = "",
) -> tuple[Opening, datetime | None]:
    """Return whether windows and deadline allow a start now (aware, UTC), and when this answer changes.

    None: it does not change by time. `offered` says who offers what starts only inside a window, empty if
    nothing of this event does.
    """
    openness = settings.calendar.at(now, node.labels)
    if openness.open:
        return Opening(True, openness.because), None
    changes = openness.changes_at
    if openness.absolute:
        return Opening(False, f"{openness.because}, and the freeze is absolute"), changes
    if policy.outside_window is OutsideWindow.NEVER:
        return Opening(False, f"{openness.because}, and outsideWindow is Never"), changes
    if offered:
        return Opening(False, f"{openness.because}, and the offer of {offered} waits for a window"), changes
    if has_come(outside_from(event, policy), now):
        return Opening(True, why_due(event, policy, now), openness.because), None
    found, deadline = settings.calendar.outlook(now, node.labels).first_open(now), deadline_of(event, policy)
    window = found[1] if found is not None and found[1].start > now else None
    # The sentence that waits for the next window says when it opens.
    closed = openness.because if openness.not_allowed else "no maintenance window is open"
    if window is not None and (deadline is None or window.start < deadline):
        before = f", before the deadline {to_text(deadline)}" if deadline is not None else ""
        waits = f"{closed}; waits for {window.window}, which opens at {to_text(window.start)}{before}"
        return Opening(False, waits), window.start
    if deadline is None:
        return Opening(False, f"{openness.because}; no window opens"), changes
    # Budget and spacing may keep the node waiting for longer, so this is only the first possible moment.
    unfrozen = settings.calendar.absolute_until(deadline, node.labels)
    if unfrozen == deadline:
        starts: datetime | None = deadline
        waits = f"no window opens before the deadline, so it starts at {to_text(deadline)} at the earliest"
    else:
        moments = (unfrozen, window.start if window is not None else None)
        starts = min((moment for moment in moments if moment is not None), default=None)
        ends = (
            f", so it starts at {to_text(starts)} at the earliest" if starts is not None else " without end"
        )
        covered = f"before the deadline {to_text(deadline)}, which an absolute freeze covers"
        waits = f"no window opens {covered}{ends}"
    return Opening(False, f"{closed}; {waits}"), starts or changes


def why_due(event: MaintenanceEvent, policy: EventPolicy, now: datetime) -> str:
    """Return why the drain waits for no window any more at `now` (aware, UTC), empty if it does."""
    deadline = deadline_of(event, policy)
    if policy.outside_window is OutsideWindow.IMMEDIATELY:
        return f"{event.kind} is drained at once (outsideWindow is Immediately)"
    if event.started and not event.kind.is_pause:
        return f"{event.kind} has started, so it is due now"
    if event.date_unreadable and not event.kind.is_pause:
        return "its date can't be read, so it is due now"
    if deadline is not None and now >= deadline:
        late = now - deadline
        passed = (
            "is reached" if late < timedelta(minutes=1) else f"passed {int(late.total_seconds() // 60)}m ago"
        )
        return f"the deadline {to_text(deadline)} {passed}"
    return ""


def first_allowed(outlook: Outlook, exempt: Exemption, moment: datetime) -> tuple[datetime, str] | None:
    """Return the first moment at which the calendar allows a start that does without what is `exempt`.

    With it comes the window, empty if it needs none. None: there is no such moment.
    """
    opening = outlook.first_open(moment)
    outside = None
    if exempt.windows is not None:
        outside = max(moment, exempt.windows)
        if not has_come(exempt.freezes, outside):
            outside = outlook.unfrozen(outside)
    if opening is not None and (outside is None or opening[0] <= outside):
        window = opening[1].window
        return opening[0], "" if window == ANY_TIME else window
    return (outside, "") if outside is not None else None
