"""Judging: how the settings apply to one event of one node, now, and what its start does without."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reconciler.calendar.values import format_duration
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
from reconciler.model.instructions import Waiver
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent, Opening
from reconciler.model.record import KnownEvent, Record, identity, same_event
from reconciler.model.schedule import StartTimes, Urgency
from reconciler.model.snapshot import Remediator
from reconciler.model.values import replace
from reconciler.profiles.endings import Means, after_drain
from reconciler.settings.policies import EventPolicy, NodePolicies, UserInitiated
from reconciler.settings.schema import Mode, Settings
from reconciler.starts.times import NEAR, deadline_of, exemption, lost_from, opening_of, start_times, why_due

_NO_MEANS = Means()


def judge(
    event: MaintenanceEvent,
    node: Node,
    settings: Settings,
    remediator: Remediator,
    now: datetime,
    means: Means = _NO_MEANS,
) -> JudgedEvent:
    """Return whether the event requires a drain of this node, whether it may start now, and why.

    `now` is aware, UTC. `means` is what the pass knows about the node by which its
    maintenance could end before the platform does it.
    """
    policies = settings.policies(node.labels)
    policy = policies[event.kind, event.condition]
    if policy is None:
        return JudgedEvent(event, False, False, f"the settings no longer name {event.condition}")
    plain = policy
    if means.spread:
        policy = replace(policy, lead_time=policy.lead_time + means.spread)
    reports_users = policies.user_initiated is UserInitiated.REPORT
    deadline = deadline_of(event, policy)
    ignored = _ignored(event, policy, now, reports_users=reports_users)
    ignored = ignored or _left(event, node, settings, remediator)
    if ignored:
        because, until = ignored
        return JudgedEvent(event, False, False, because, deadline, until=until)
    outlook = settings.calendar.outlook(now, node.labels)
    after = after_drain(event, policy, node, means, now)
    taken = bool(after.offered) and after.by_us
    times = start_times(event, policy, outlook, ends=after.by_us, taken=taken)
    if means.spread and times.latest is not None:
        # A deadline is one by the fastest clock. How long before its latest start a drain may begin opens by
        # the slowest one.
        opens = start_times(event, plain, outlook, ends=after.by_us, taken=taken).earliest
        times = replace(times, earliest=max(times.earliest, min(opens, times.latest)))
    waiver = means.waives(event)
    if waiver is not None:
        times = StartTimes(EARLIEST, times.deadline, times.deadline) if waiver.now else times
        times = replace(times, earliest=EARLIEST)
    early = _early(event, times, now, notice=means.notice, taken=taken) if waiver is None else None
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
            exempt=exemption(event, policy, settings.budget.exempt, None),
        )
    starts = not (event.kind.is_pause and event.status is Status.STARTED)
    # An offer for a date that is weeks ahead is accepted only inside a window.
    otherwise = after.by_us and bool(after.endings)
    in_window = taken and (
        event.not_before is None or now < start_times(event, policy, outlook, ends=otherwise).earliest
    )
    offered = after.offered if in_window else ""
    lost = lost_from(event, policy, settings.budget.exempt, means.spread)

    def opening_at(moment: datetime) -> tuple[Opening, datetime | None]:
        return opening_of(event, policy, node, settings, moment, offered=offered)

    opening, until = opening_at(now)
    if opening.allowed and means.spread:
        # A window that is over by one of the clocks may be over.
        opening, until = opening_at(now + means.spread)
    if waiver is not None and waiver.now:
        opening, until = Opening(True, waiver.words, "" if opening.allowed else opening.words), None
    return JudgedEvent(
        event,
        asks=True,
        starts=starts,
        because=_because(event, deadline, now, waiver, starts=starts),
        deadline=deadline,
        opening=opening,
        may_start=opening.allowed and times.earliest <= now,
        far=now < times.earliest - NEAR,
        until=until,
        due=bool(why_due(event, policy, now)),
        lost_from=lost,
        after_drain=after,
        times=times,
        exempt=exemption(event, policy, settings.budget.exempt, lost if starts else None, waiver),
        waiver=waiver,
    )


def _because(
    event: MaintenanceEvent, deadline: datetime | None, now: datetime, waiver: Waiver | None, *, starts: bool
) -> str:
    if not starts:
        return f"{event.kind} has started: a drain would come too late"
    because = f"{event.condition or event.kind} requires a drain"
    if event.cause.degraded and deadline is not None and now < deadline:
        because = f"{because}: the hardware under the VM fails"
    return because if waiver is None else f"{because}; {waiver.words}"


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
    # AKS's own detector lets a user's reboot or redeploy start at once, so notice is near zero. A request
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
    if signal.status is not Status.STARTED or not signal.reports_start:
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
        or (kept.uncordoned is None and any(same_event(event, mine) for event in kept.dismissed))
        for _, kept in record.profiles
    )
