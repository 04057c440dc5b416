"""The cases of a pass as the schedule needs them, and what it says about each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from reconciler.calendar.occurrences import FOREVER
from reconciler.model.event import Kind, MaintenanceEvent
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import shifted, to_text
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import CaseRecord, State
from reconciler.model.schedule import CaseSchedule, StartTimes
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.profiles import case as cases
from reconciler.settings.schema import Mode, Settings
from reconciler.starts.budget import DisruptionBudget, PlacesAhead
from reconciler.starts.forecast import plan_starts
from reconciler.starts.schedule import Case, Limits, Outage, Place, assumed_end
from reconciler.starts.times import exempt_beside

_NAMED_AT_MOST = 3

_UNNOTICED = timedelta(minutes=2)
"""How long a node is still Ready at most when its VM is gone: Kubernetes waits for it for up to a minute."""

_GOES_DOWN = (Kind.REBOOT, Kind.REDEPLOY)
"""Kinds after which the node is out of service, drained or not, and comes back."""


def schedules(
    seen: Sequence[NodeFacts], places: DisruptionBudget, ledger: Ledger, context: PassContext
) -> Mapping[str, CaseSchedule]:
    """Return the schedule of each node with a case; one whose data ends in an error is one of the faults."""
    faults, mode, waiting = context.faults, context.settings.mode, dict[str, Case]()
    found: dict[str, CaseSchedule] = {}
    for node in seen:
        if node.problem or node.untouched is not None:
            continue
        work = partial(_case, node, places, context)
        case = faults.of(node.name, "its start is not planned", work, None)
        if isinstance(case, Case):
            waiting[node.name] = case
        elif case is not None:
            found[node.name] = case
    if mode is Mode.FINISH:
        found |= {name: _unstarted(case) for name, case in waiting.items()}
    elif waiting:
        limits = _limits(seen, waiting, places, ledger, context)
        found |= plan_starts(limits, waiting.values(), context.now)
    if mode is Mode.OBSERVE:
        # Nobody brings back a node that is in maintenance.
        return {
            name: replace(schedule, observed=True, ends=None if schedule.started else schedule.ends)
            for name, schedule in found.items()
        }
    return found


def _unstarted(case: Case) -> CaseSchedule:
    """Return the schedule of a case in mode Finish. With a date ahead of it, it is missed as things stand."""
    dated = (case.times.deadline is not None or case.short) and not case.outage.struck
    because = "mode is Finish, so nothing new is started"
    return CaseSchedule(
        latest_start=case.times.latest or case.times.deadline,
        missed=dated,
        because=f"{because}: mode: Enforce would do" if dated else because,
        cause="mode" if dated else "",
        comes_back=not case.kind.takes_the_vm,
    )


def _without_start(node: NodeFacts, context: PassContext) -> CaseSchedule | None:
    """Return what the schedule says of a node that waits for no start: its drain began, or a plan waits."""
    drain = node.case.drain
    if node.case.state is State.IN_MAINTENANCE and drain is not None:
        covered = [judged for judged in node.judged if cases.covers(node.case, judged.event)]
        deadlines = [judged.deadline or _recorded_deadline(node, judged) for judged in covered]
        latest = min((deadline for deadline in deadlines if deadline is not None), default=None)
        hold = node.instructions.hold
        if drain.done is None and hold is not None and hold.stops:
            # A drain that a person has stopped is late if the hold ends after the date.
            dates = (_date(node, judged.event) for judged in covered)
            date = min((date for date in dates if date is not None), default=None)
            late = date is not None and (hold.word.until is None or hold.word.until >= date)
            words = f"its drain is stopped: {hold.words(node.name)}"
            return CaseSchedule(
                drain.since,
                latest,
                started=True,
                because=words,
                stopped=words,
                missed=late,
                cause=f"person {to_text(date)}" if date is not None and late else "",
            )
        ends = _end(node, context) if _knows_end(node, covered, context) else None
        back = cases.taken_for_good(node.case) is None
        return CaseSchedule(
            drain.since,
            latest,
            because="its drain has begun",
            # When an overdue node comes back nobody knows.
            ends=ends if back and ends is not None and ends > context.now else None,
            started=True,
            ending=next((judged.after_drain.words for judged in covered if judged.after_drain.words), ""),
            comes_back=back,
        )
    plan = next((event for event in node.judged if event.waits_for_notice), None)
    if plan is None or plan.event.plan is None:
        return None
    return CaseSchedule(
        because=plan.because, plan_from=plan.event.not_before, plan_until=plan.event.plan.until
    )


def _case(node: NodeFacts, places: DisruptionBudget, context: PassContext) -> Case | CaseSchedule | None:
    """Return the case of a node that waits for a start, or its schedule if it waits for none."""
    # The events that require a drain now or later, and for which none has begun.
    waiting = [
        (judged, judged.times)
        for judged in node.current
        if judged.times is not None
        and (not judged.asks or judged.starts)
        and not cases.covers(node.case, judged.event)
    ]
    if not waiting:
        return _without_start(node, context)
    judged, times = min(waiting, key=lambda pair: _first(*pair))
    settings, read, now = context.settings, node.read, context.now
    first = min((each for _, each in waiting), key=lambda each: each.earliest)
    times = replace(times, earliest=first.earliest, kept=first.kept)
    if times.deadline is None and judged.event.started:
        times = replace(times, deadline=_recorded_deadline(node, judged))
    seen_since = node.case.facts.announced or (node.case.since if node.case.open else None) or now
    at_once = judged.event.started or judged.event.date_unreadable
    late = times.deadline is not None and times.deadline <= seen_since
    policy = node.policies[judged.event.kind, judged.event.condition]
    # Where we end it, it takes as long as such cases took before.
    lasts = _usual(settings)
    if judged.after_drain.by_us:
        lasts = context.snapshot.ledger.lasted.get(judged.event.kind, lasts)
    date, back = _date(node, judged.event), _back(judged, node, context, begins=times.earliest)
    return Case(
        node=read.name,
        zone=read.zone,
        pool=read.pool,
        kind=judged.event.kind,
        times=times,
        outlook=settings.calendar.outlook(now, read.labels),
        lasts=lasts,
        lead=policy.lead_time if policy is not None else timedelta(),
        outage=Outage(
            date=date,
            taken_down=taken_down(judged, now),
            back=back,
            up=_over(judged, date, context, times.earliest) if back and date else None,
            too_late_from=_too_late_from(judged, now),
            struck=any(each.struck for each, _ in waiting),
        ),
        short=late or (at_once and times.deadline is None),
        exempt=exempt_beside(waiting),
        has_place=read.name in places.holders,
        groups=context.snapshot.for_settings.groups.get(read.name, frozenset()),
        # Not for a plan that requires no drain yet, and not against the wish of a person.
        joins=all(each.asks and each.starts for each, _ in waiting) and not times.kept,
        ending=judged.after_drain.words,
        knows_end=back is not None or judged.after_drain.by_us,
    )


def _usual(settings: Settings) -> timedelta:
    """Return how long a maintenance is expected to take of which nobody says how long it takes."""
    return settings.drain.timeout + settings.uncordon.settle


def _first(judged: JudgedEvent, times: StartTimes) -> tuple[datetime, int]:
    at_once = times.deadline is None and (judged.event.started or judged.event.date_unreadable)
    return (EARLIEST if at_once else times.deadline or FOREVER, -judged.event.kind.severity)


def _date(node: NodeFacts, event: MaintenanceEvent) -> datetime | None:
    """Return the date of an event. Azure empties it at the start, but the record has it."""
    known = (old.not_before for old in node.case.events if old.not_before and old.matches(event))
    return event.not_before or next(known, None)


def _recorded_deadline(node: NodeFacts, judged: JudgedEvent) -> datetime | None:
    date = _date(node, judged.event)
    policy = node.policies[judged.event.kind, judged.event.condition]
    return date - policy.lead_time if date is not None and policy is not None else None


def taken_down(judged: JudgedEvent, now: datetime) -> datetime | None:
    """Return when the platform takes the node out of service for a while, None if it does not."""
    return _too_late_from(judged, now) if judged.event.kind in _GOES_DOWN else None


def _too_late_from(judged: JudgedEvent, now: datetime) -> datetime | None:
    """Return when the platform begins, and a drain comes too late; None for what it does not do itself."""
    event = judged.event
    if not event.reports_start:
        return None
    return event.not_before if event.not_before is not None and event.not_before > now else None


def _back(
    judged: JudgedEvent, node: NodeFacts, context: PassContext, *, begins: datetime = EARLIEST
) -> datetime | None:
    """Return when the maintenance of a node is expected to be over; None: a while after its drain starts.

    Where the platform names days, it may begin on any of them. A node whose drain does not begin before the
    end is never in maintenance, so it does not settle.
    """
    event, date = judged.event, _date(node, judged.event)
    if judged.after_drain.by_us or date is None:
        return None
    until = event.plan.until if event.plan is not None else None
    return _over(judged, date, context, begins, until or date)


def _over(
    judged: JudgedEvent, date: datetime, context: PassContext, begins: datetime, until: datetime = EARLIEST
) -> datetime:
    """Return when a maintenance that begins at this date is over, but not before `until`."""
    event, settings = judged.event, context.settings
    if event.kind.takes_the_vm:
        # Such a node does not come back, so it does not settle.
        over, after = max(date, until), _UNNOTICED
    else:
        lasts = event.duration if event.duration is not None else settings.drain.timeout
        over, after = max(date + lasts, until), settings.uncordon.settle
    return over if over <= begins else over + after


def _end(node: NodeFacts, context: PassContext) -> datetime | None:
    """Return when a node in maintenance was or is expected back, None if nobody has said so."""
    settings = context.settings
    if node.record is not None and node.record.claimed_by:
        return None
    record: CaseRecord = node.case
    if record.quiet_since is not None:
        return record.quiet_since + settings.uncordon.settle
    ends = [
        end
        for judged in node.judged
        if cases.covers(record, judged.event) and (end := _back(judged, node, context)) is not None
    ]
    since = record.drain.since if record.drain is not None else record.since
    if ends:
        return max(ends)
    return since + _usual(settings) if since is not None else None


def _knows_end(node: NodeFacts, covered: Sequence[JudgedEvent], context: PassContext) -> bool:
    """Whether anybody knows when a node in maintenance is back: by dates, or because we end its events."""
    if node.case.quiet_since is not None:
        return True
    backs = [_back(judged, node, context) for judged in covered if not judged.after_drain.by_us]
    return bool(covered) and all(back is not None and back > context.now for back in backs)


def _limits(
    seen: Sequence[NodeFacts],
    waiting: Mapping[str, Case],
    places: DisruptionBudget,
    ledger: Ledger,
    context: PassContext,
) -> Limits:
    """Return the limits of the budget with the nodes that hold a place now, until they are expected back."""
    budget, last = places.settings, ledger.last_start
    whole, *others = places.limits(places.zones, places.pools)
    reserve = budget.reserve.of(places.fleet)
    planned = PlacesAhead("maxUnavailable (without budget.reserve)", max(whole.places - reserve, 0))
    limits = Limits(
        PlacesAhead(whole.name, whole.places),
        planned if reserve else None,
        {(limit.kind, limit.group): PlacesAhead(limit.name, limit.places) for limit in others},
        budget.spacing,
        [last] if last is not None else [],
        context.settings.drain.groups_together,
    )
    by_name = {node.name: node for node in seen}
    down = {node.name: node for node in context.snapshot.nodes if node.name in places.holders}
    gone = {machine.node: machine.at for machine in ledger.replaced}
    for name in sorted(places.holders):
        if name not in waiting:
            holder = by_name.get(name)
            zone, pool = places.holders.where(name)
            end, changes = _freed(holder, down.get(name), gone.get(name), context)
            short = holder is not None and _was_short(holder)
            limits.hold(Place(name, zone, pool, short), end)
            limits.changes_at = changes or limits.changes_at
    return limits


def _was_short(node: NodeFacts) -> bool:
    """Whether the node was drained for an event that was announced at its deadline or later."""
    announced = node.case.facts.announced
    dates = [event.not_before for event in cases.allowed(node.case) if event.not_before is not None]
    if announced is None or not dates:
        return False
    return all(
        event.not_before - policy.lead_time <= announced
        for event in cases.allowed(node.case)
        if event.not_before is not None and (policy := node.policies[event.kind, event.condition]) is not None
    )


def _freed(
    node: NodeFacts | None, read: Node | None, replaced: datetime | None, context: PassContext
) -> tuple[datetime, datetime | None]:
    """Return when the place of a node is free again, and when that answer changes; None if it is known."""
    now, ignored_after = context.now, context.settings.budget.ignore.not_ready_for
    if replaced is not None:
        return max(shifted(replaced, ignored_after), now), None
    ours = node is not None and node.state is State.IN_MAINTENANCE
    end = _end(node, context) if node is not None and ours else None
    # A node that stays NotReady counts as gone then, in our maintenance too.
    gone = None
    if read is not None and not read.ready and read.ready_changed is not None:
        gone = max(shifted(read.ready_changed, ignored_after), now)
    if end is not None and end > now:
        return (end if gone is None else min(end, gone)), None
    if gone is not None:
        return gone, None
    if end is not None:
        return assumed_end(end, now)
    record = node.record if node is not None else None
    known = (
        read.out_of_service_since if read is not None else None,
        record.cordon.since if record is not None and record.cordon is not None else None,
    )
    return assumed_end(min((one for one in known if one is not None), default=None), now)
