"""Judging: how the settings apply to one event of one node, now, and what its start does without.

The deadline rule is here: a window decides when a drain may start, and the policy of the event decides what
happens while no window is open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from reconciler.calendar.outlook import Outlook
from reconciler.calendar.values import format_duration
from reconciler.model.case_outcome import reports_start
from reconciler.model.event import (
    REQUEST,
    Initiator,
    Kind,
    MaintenanceEvent,
    Reading,
    Signal,
    Status,
    WaitForNotice,
)
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import has_come, to_text
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent, Opening
from reconciler.model.record import KnownEvent, Record, identity, same_event
from reconciler.model.schedule import Exemption, StartTimes, Urgency
from reconciler.model.snapshot import Remediator
from reconciler.model.values import replace
from reconciler.profiles.endings import Means, after_drain
from reconciler.settings.policies import EventPolicy, NodePolicies, OutsideWindow, Start, UserInitiated
from reconciler.settings.schema import Mode, Settings

_NO_MEANS = Means()

SHORT_NOTICE = timedelta(minutes=15)
"""An event that is to be drained at once has no time to wait for a place this long before its date."""


def judge(
    event: MaintenanceEvent,
    node: Node,
    settings: Settings,
    remediator: Remediator,
    now: datetime,
    means: Means = _NO_MEANS,
) -> JudgedEvent:
    """Return whether the event requires a drain of this node, whether it may start now, and why.

    `now` is aware, UTC. `means` is what the pass knows about the node's own sources, machine and VM.
    """
    policies = settings.policies(node.labels)
    policy = policies[event.kind, event.condition]
    if policy is None:
        return JudgedEvent(event, False, False, f"the settings no longer name {event.condition}")
    plain = policy
    if means.spread:
        policy = replace(policy, lead_time=policy.lead_time + means.spread)
    reports_users = policies.user_initiated is UserInitiated.REPORT
    deadline = _deadline(event, policy)
    ignored = _ignored(event, policy, now, reports_users=reports_users)
    ignored = ignored or _left(event, node, settings, remediator)
    if ignored:
        because, until = ignored
        return JudgedEvent(event, False, False, because, deadline, until=until)
    outlook = settings.calendar.outlook(now, node.labels)
    after = after_drain(event, policy, node, means, now)
    taken = after.offered and after.by_us
    times = start_times(event, policy, outlook, ends=after.by_us, taken=taken)
    if means.spread and times.latest is not None:
        # A deadline is one by the fastest clock. How long before its latest start a drain may begin opens by
        # the slowest one.
        opens = start_times(event, plain, outlook, ends=after.by_us, taken=taken).earliest
        times = replace(times, earliest=max(times.earliest, min(opens, times.latest)))
    early = _early(event, times, now, notice=means.notice, taken=taken)
    if early:
        because, until = early
        waits = _waits_for_notice(event, notice=means.notice)
        return JudgedEvent(
            event,
            asks=False,
            starts=False,
            because=because,
            deadline=deadline,
            until=until,
            times=None if waits else times,
            waits_for_notice=waits,
            after_drain=after,
            exempt=Exemption(windows=_outside_from(event, policy, deadline)),
        )
    starts = not (event.kind.is_pause and event.status is Status.STARTED)
    # An offer for a date that is weeks ahead is accepted only inside a window.
    otherwise = after.by_us and (after.acknowledges or after.replaces)
    waits_for_window = taken and (
        event.not_before is None or now < start_times(event, policy, outlook, ends=otherwise).earliest
    )
    lost_from = _lost_from(event, policy, settings.budget.exempt, means.spread)
    exempt = _exemption(event, policy, settings, deadline, lost_from if starts else None)
    may, timing, until, overruled = _timing(
        event, policy, node, settings, now, waits_for_window=waits_for_window
    )
    if may and means.spread:
        # A window that is over by one of the clocks may be over.
        may, timing, until, overruled = _timing(
            event, policy, node, settings, now + means.spread, waits_for_window=waits_for_window
        )
    return JudgedEvent(
        event,
        asks=True,
        starts=starts,
        because=_because(event, deadline, now, starts=starts),
        deadline=deadline,
        opening=Opening(may, timing, overruled),
        may_start=may and times.earliest <= now,
        far=now < times.earliest - NEAR,
        until=until,
        due=bool(_due(event, policy, deadline, now)),
        lost_from=lost_from,
        after_drain=after,
        times=times,
        exempt=exempt,
    )


def _because(event: MaintenanceEvent, deadline: datetime | None, now: datetime, *, starts: bool) -> str:
    if not starts:
        return f"{event.kind} has started: a drain would come too late"
    because = f"{event.condition or event.kind} requires a drain"
    if event.cause.degraded and deadline is not None and now < deadline:
        return f"{because}: the hardware under the VM fails"
    return because


def _ignored(
    event: MaintenanceEvent, policy: EventPolicy, now: datetime, *, reports_users: bool
) -> tuple[str, datetime | None] | None:
    name = event.condition or event.kind.value
    if not policy.drain and not event.replaces:
        if event.condition:
            return f"{name} is ignored (conditions.{name}.drain is false)", None
        if event.kind is Kind.UNKNOWN:
            return f"the event can't be read: {event.cause.description!r}", None
        return f"{name} is ignored (events.{name}.drain is false)", None
    if event.condition and event.since is not None and now - event.since < policy.for_:
        until = event.since + policy.for_
        long_enough = f"{format_duration(policy.for_)}, until {to_text(until)}"
        return f"{name} must be {policy.status} for {long_enough}", until
    if event.duration is not None and event.duration < policy.min_duration:
        limit = format_duration(policy.min_duration)
        short = f"{event.duration.total_seconds():g}s is below minDuration {limit}"
        return f"{name} is ignored: {short}", None
    # AKS's own detector acknowledges a user's reboot or redeploy at once, so notice is near zero. A request
    # in our own annotation names the drain, so it does not matter who started the event.
    by_user = event.cause.initiator is Initiator.USER and REQUEST not in event.sources
    if by_user and reports_users and event.kind in (Kind.REBOOT, Kind.REDEPLOY):
        return f"a user started this {name} (events.userInitiated is Report)", None
    return None


def _left(
    event: MaintenanceEvent, node: Node, settings: Settings, remediator: Remediator
) -> tuple[str, datetime | None] | None:
    name = event.condition or event.kind.value
    if remediator.on_freeze and event.kind.is_pause:
        return f"{name} is left to AKS's remediator (OnFreeze in remediator-config)", None
    if settings.coexist.karpenter.leaves(event, node):
        return f"{name} is left to Karpenter (coexist.karpenter.leave)", None
    return None


def _early(
    event: MaintenanceEvent, times: StartTimes, now: datetime, *, notice: bool, taken: bool
) -> tuple[str, datetime | None] | None:
    """Return why a plan of the platform requires no drain yet, and until when; None if it does.

    Azure announces a reboot weeks ahead. A drain in the next window would leave the node idle until then.
    """
    plan = event.plan
    if plan is None or taken:
        return None
    if event.not_before is None:
        return f"{event.kind} is planned, but its time is unknown", None
    offer = plan.offer_start
    if _waits_for_notice(event, notice=notice):
        days = f"between {to_text(event.not_before)} and {to_text(plan.until or event.not_before)}"
        waits = "its notice comes minutes before, and starts the drain"
        return f"{event.kind} is planned {days}: {waits}", offer if offer and offer > now else None
    begins = times.earliest
    if now >= begins:
        return None
    changes = min(one for one in (begins, offer) if one and one > now)
    key = f"sources.{event.sources[0]}" if plan.ahead is not None else f"events.{event.kind}"
    begun = f"a drain may start from {to_text(begins)} ({key}.ahead)"
    return f"{event.kind} is planned for {to_text(event.not_before)} or later: {begun}", changes


def _waits_for_notice(event: MaintenanceEvent, *, notice: bool) -> bool:
    """Whether a plan names days but no moment, and a source reports the moment minutes before."""
    plan = event.plan
    if plan is None or plan.until is None or event.not_before is None or plan.until <= event.not_before:
        return False
    return plan.waits is WaitForNotice.ALWAYS or (plan.waits is WaitForNotice.AUTO and notice)


def _deadline(event: MaintenanceEvent, policy: EventPolicy) -> datetime | None:
    return event.not_before - policy.lead_time if event.not_before else None


def _lost_from(
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


def _exemption(
    event: MaintenanceEvent,
    policy: EventPolicy,
    settings: Settings,
    deadline: datetime | None,
    lost_from: datetime | None,
) -> Exemption:
    """Return what the start of a drain for this event does without: the only place that says so.

    A node that is lost, or out of service, with or without a place needs none. `lost_from` is from when on
    the node may be lost, None if a drain can't begin for the event.
    """
    taken = event.kind in settings.budget.exempt
    lost = lost_from if taken or (event.started and reports_start(event)) else None
    return Exemption(
        places=lost,
        spacing=lost,
        slots=lost_from if taken else None,
        windows=_outside_from(event, policy, deadline),
    )


def _outside_from(event: MaintenanceEvent, policy: EventPolicy, deadline: datetime | None) -> datetime | None:
    if policy.outside_window is OutsideWindow.NEVER:
        return None
    if policy.outside_window is OutsideWindow.IMMEDIATELY:
        return EARLIEST
    if (event.started or event.date_unreadable) and not event.kind.is_pause:
        return EARLIEST
    return deadline


def _timing(
    event: MaintenanceEvent,
    policy: EventPolicy,
    node: Node,
    settings: Settings,
    now: datetime,
    *,
    waits_for_window: bool,
) -> tuple[bool, str, datetime | None, str]:
    """Return whether a drain may start now, why, until when that holds, and what the deadline overrules."""
    deadline = _deadline(event, policy)
    openness = settings.calendar.at(now, node.labels)
    if openness.open:
        return True, openness.because, None, ""
    if openness.absolute:
        return False, f"{openness.because}, and the freeze is absolute", openness.changes_at, ""
    if policy.outside_window is OutsideWindow.NEVER:
        return False, f"{openness.because}, and outsideWindow is Never", openness.changes_at, ""
    outlook = settings.calendar.outlook(now, node.labels)
    if waits_for_window:
        return False, f"{openness.because}, and self-service waits for a window", openness.changes_at, ""
    # Below, the sentence that waits for the next window says when it opens.
    closed = openness.because if openness.not_allowed else "no maintenance window is open"
    if has_come(_outside_from(event, policy, deadline), now):
        return True, _due(event, policy, deadline, now), None, openness.because
    found = outlook.first_open(now)
    opening = found[1] if found is not None and found[1].start > now else None
    if deadline is None:
        if opening is None:
            return False, f"{openness.because}; no window opens", openness.changes_at, ""
        waits = f"waits for {opening.window}, which opens at {to_text(opening.start)}"
        return False, f"{closed}; {waits}", opening.start, ""
    if opening is not None and opening.start < deadline:
        waits = f"waits for {opening.window}, which opens at {to_text(opening.start)}"
        return False, f"{closed}; {waits}, before the deadline {to_text(deadline)}", opening.start, ""
    waits, starts = _forecast(deadline, opening.start if opening is not None else None, node, settings)
    return False, f"{closed}; {waits}", starts or openness.changes_at, ""


def _forecast(
    deadline: datetime, opens: datetime | None, node: Node, settings: Settings
) -> tuple[str, datetime | None]:
    """Return what happens at a deadline before which no window opens, and the first moment of a start.

    Budget and spacing may keep the node waiting for longer, so it is only the first possible moment.
    """
    unfrozen = settings.calendar.absolute_until(deadline, node.labels)
    if unfrozen == deadline:
        return (
            f"no window opens before the deadline, so it starts at {to_text(deadline)} at the earliest",
            deadline,
        )
    covered = f"no window opens before the deadline {to_text(deadline)}, which an absolute freeze covers"
    starts = min((one for one in (unfrozen, opens) if one is not None), default=None)
    if starts is None:
        return f"{covered} without end", None
    return f"{covered}, so it starts at {to_text(starts)} at the earliest", starts


def _due(event: MaintenanceEvent, policy: EventPolicy, deadline: datetime | None, now: datetime) -> str:
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


NEAR = timedelta(hours=1)
"""A drained node is kept for a start that comes so soon: its pods would come back only to go again."""


def start_times(
    event: MaintenanceEvent, policy: EventPolicy, outlook: Outlook, *, ends: bool = False, taken: bool = False
) -> StartTimes:
    """Return when a drain for the event may start on a node with this outlook (now is the outlook's).

    `ends` says that we can end it once the node is drained, so that no node stands empty until its date.
    `taken` says that the platform lets us begin its maintenance now, and the settings accept it.
    """
    deadline = _deadline(event, policy)
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


def urgency_of(
    judged: Iterable[JudgedEvent], hidden: Iterable[KnownEvent], policies: NodePolicies
) -> Urgency | None:
    """Return the urgency of a node: that of its most urgent event, None if no event requires a drain.

    `judged` are the events that are reported now, without dismissed ones. `hidden` are those of the record
    that no source can report now; they count with what the record keeps of them.
    """
    found = [_reported(one) for one in judged if one.asks and one.starts]
    found += [_recorded(one, policies) for one in hidden]
    return min(found, key=lambda one: one.key, default=None)


def _reported(one: JudgedEvent) -> Urgency:
    event = one.event
    # For most kinds this is the deadline. A kind with seconds of notice has none that comes in time.
    latest = one.lost_from if event.not_before is not None and not event.started else one.deadline
    return Urgency(event.kind, latest, event.started, event.date_unreadable)


def _recorded(known: KnownEvent, policies: NodePolicies) -> Urgency:
    policy = policies[known.kind, known.condition]
    lead = policy.lead_time if policy is not None else None
    deadline = known.not_before - lead if known.not_before and lead is not None else known.not_before
    return Urgency(known.kind, deadline)


def is_struck(node: Node, record: Record | None, readings: Iterable[Reading], settings: Settings) -> bool:
    """Whether the node's pods have to be read, because an event has started that may require a drain.

    It asks less than the judgement of an event, so a node too many may be read, and none is left out.
    """
    if settings.mode is Mode.OBSERVE or (record is not None and record.claimed_by):
        return False
    if not (settings.in_fleet(node.labels) and settings.manages(node.labels)):
        return False
    return any(
        _counts(signal, node, settings) and not _is_known(signal, node, record)
        for reading in readings
        for signal in reading.signals
    )


def _counts(signal: Signal, node: Node, settings: Settings) -> bool:
    if signal.status is not Status.STARTED or signal.condition or signal.source == REQUEST:
        return False
    policy = settings.policies(node.labels)[signal.kind, ""]
    return policy is not None and policy.drain


def _is_known(signal: Signal, node: Node, record: Record | None) -> bool:
    """Whether the record has the answer: nobody was on the node, the pods were counted, or it is ignored."""
    if record is None:
        return False
    # Since a person has uncordoned the node, pods may have come.
    if record.drain is not None and record.drain.drain.done is not None and node.unschedulable:
        return True
    mine = identity(signal)
    return any(
        any(same_event(start.event, mine) and start.pods is not None for start in kept.facts.starts)
        or (kept.uncordoned is None and any(same_event(one, mine) for one in kept.dismissed))
        for _, kept in record.profiles
    )
