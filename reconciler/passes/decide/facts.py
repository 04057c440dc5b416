"""The facts of a case: what the platform did while pods were on the node, and the warnings about it.

A fact is recorded first. Then the Warning Event is sent, and only then the record says so. A pass that finds
a fact without that note sends the Event again: a killed process loses none, and no other sends one twice.

Unknown is not healthy, so a case whose sources are gone never ends by itself: a hold says how to end it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.drain.filters import Survey, survey
from reconciler.drain.prospect import whose
from reconciler.model import limits
from reconciler.model.case_outcome import counted, struck_by, unbegun
from reconciler.model.drains import Blocker, Comebacks, Coming, DrainOptions, DrainProgress, WaitLimit, coming
from reconciler.model.ended_case import held_by
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.record import (
    CaseFacts,
    CaseRecord,
    DrainRecord,
    Forecast,
    KnownEvent,
    PlatformStart,
    State,
)
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.passes.decision import CaseDecision
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.profiles import case as cases
from reconciler.profiles.orders import drain_options
from reconciler.settings.schema import Mode


def pods_left(node: Node, options: DrainOptions, context: PassContext) -> Survey | None:
    """Return what a drain with these options finds on the node, None if its pods were not read."""
    snapshot = context.snapshot
    pods = snapshot.pods.get(node.name)
    if pods is None:
        return None
    return survey(
        pods,
        options,
        now=context.now,
        namespaces=snapshot.for_settings.namespaces,
        own_pod=snapshot.itself.pod,
    )


def with_returns(
    options: DrainOptions, drain: DrainRecord, begun: datetime | None, drained: DrainProgress | None
) -> DrainOptions:
    """Return the options with what tells the pods that come to the cordoned node and stay.

    `begun` is when the maintenance of the node began (UTC; None: with this attempt). The first attempt evicts
    pods that came between the cordon and its own start, and no later one evicts what the first left.
    """
    since = drain.since if drain.attempt == 1 else begun or drain.since
    returned = drained.returned if drained is not None else frozenset[str]()
    return replace(options, comebacks=Comebacks(since, returned, coming_to(drain, drained)))


def coming_to(drain: DrainRecord, drained: DrainProgress | None) -> tuple[Coming, ...]:
    """Return the namespaces from which new pods keep coming: as this process or an earlier one has seen."""
    here = drained.coming if drained is not None and drained.since == drain.since else ()
    seen = {one.namespace: one for one in (*drain.kept.coming, *coming(drain.seen.returned), *here)}
    return tuple(seen[namespace] for namespace in sorted(seen))


DEADLINE_PASSED = "MaintenanceDeadlinePassed"
MISSED = "MaintenanceMissed"
WILL_BE_MISSED = "MaintenanceWillBeMissed"
NO_LONGER_MISSED = "MaintenanceNoLongerMissed"

WARNED_AFTER = timedelta(minutes=10)
"""How long the forecast of a miss holds before people are warned of it. Little time left shortens it."""

_NAMED_AT_MOST = 3
_LONGEST_REASON = 240
_LONGEST_NAMES = 600


def with_starts(
    record: CaseRecord, view: cases.CaseView, node: NodeFacts, context: PassContext
) -> CaseRecord:
    """Return the record with the starts of its events that this pass sees first.

    An event that is gone after its date has started meanwhile, as far as anyone can know. What takes the VM
    for good has started if the node is NotReady after its date: the node can't say so any more. In mode
    Observe nothing is ours to miss.
    """
    if context.settings.mode is Mode.OBSERVE:
        return record
    facts = record.facts
    # The case of an adopted node has all of its events, also those that require no drain.
    asked = record.goes_on and not record.cordon.adopted
    # Nothing is done for an event after somebody's uncordon, but the platform starts it all the same.
    left = [one for one in node.judged if record.goes_on and not record.open and one not in view.present]
    left = [one for one in left if any(old.matches(one.event) for old in record.events)]
    shown = (*view.present, *left)
    present = [(judged.event, cases.known(judged.event)) for judged in shown if judged.asks or asked]
    events = (*record.events, *(seen for _, seen in present))
    fresh: list[tuple[KnownEvent, datetime]] = []
    for reported, seen in present:
        # The record still has the date, which Azure empties at the start.
        event = next((old for old in record.events if old.matches(reported)), seen)
        if reported.started and facts.start_of(event) is None and facts.start_of(seen) is None:
            fresh.append((event, context.second))
    meanwhile = [
        (old, old.not_before)
        for old in node.gone
        if old.not_before is not None and old.not_before <= context.now
    ]
    if not node.read.ready:
        down = node.read.ready_changed or context.second
        taking = cases.taking(events, record.quiet_since)
        meanwhile += [(old, max(date, down)) for old, date in taking if date <= context.now]
    karpenter = context.settings.coexist.karpenter
    for old, at in meanwhile:
        noted = (*(start.event for start in facts.starts), *(event for event, _ in fresh))
        if not old.reports_start or any(event.matches(old) for event in noted):
            continue
        # What the settings ignore, or leave to another tool, is not ours to miss.
        policy = node.policies[old.kind, old.condition]
        if policy is None or not policy.drain or karpenter.leaves(old, node.read):
            continue
        if not (old.kind.is_pause and context.snapshot.remediator.on_freeze):
            fresh.append((old, at))
    if not fresh and all(start.pods is not None for start in facts.starts):
        return record

    # The pods on the node that a drain for these events has to evict, as far as they were read.
    unread = context.snapshot.problems.namespaces or node.name not in context.snapshot.pods
    drained = context.snapshot.drains.get(node.name)
    found = None if unread else left_by_case(record, events, node, drained, context)
    pods = None if found is None else len(found.to_go) + len(found.waiting) + len(found.refused)
    if record.drain is not None and record.drain.done is not None and node.read.unschedulable:
        pods = 0
    # Where pods could not be counted at the start, today's count is the next best, unless a drain emptied
    # the node since.
    emptied = not pods and record.drain is not None
    starts = [
        start if start.pods is not None or emptied else replace(start, pods=pods) for start in facts.starts
    ]
    starts += [PlatformStart(event, at, pods) for event, at in fresh]
    if tuple(starts) == facts.starts:
        return record
    struck = [start for start in starts if start.pods]
    if found is not None and struck and not any(start.met for start in starts):
        budgets = context.snapshot.for_settings.ahead.budgets or ()
        names = whose([each.pod for each in (*found.to_go, *found.waiting)], budgets)
        first, met = min(struck, key=lambda start: start.at), limits.text(names, _LONGEST_NAMES)
        starts = [replace(start, met=met) if start is first else start for start in starts]
    kept = tuple(starts) if len(starts) <= limits.EVENTS else (*starts[:1], *starts[1 - limits.EVENTS :])
    known = record.events or tuple(dict.fromkeys(events))
    return replace(record, events=known, facts=replace(facts, starts=kept))


def tell(decision: CaseDecision, node: NodeFacts, context: PassContext) -> None:
    """Add to the decision what the record says besides: facts, the end of the case, the Events to send."""
    before, record, view, told = decision.before, decision.record, decision.view, node.case
    forecast = _forecast(decision, node, context)
    # A plan that is weeks ahead requires nothing yet. Until then the record keeps what was said of it.
    over = not view.unknown and not any(event.asks for event in view.present) and forecast is None
    # After somebody's uncordon, the case goes on without us until its events are gone.
    uncordoned = record.uncordoned is not None and record.uncordoned != before.uncordoned
    over = over and not (record.goes_on and record.dismissed)
    ends = record.state is State.OPERATIONAL and (over or (before.open and not uncordoned))
    if ends:
        case = before
    else:
        missing = not decision.begun and record.facts.deadline_passed is None
        missing = missing and context.settings.mode is not Mode.OBSERVE
        if missing and not all(event.event.started for event in view.urgent):
            asking = (cases.known(event.event) for event in view.present if event.asks)
            facts = replace(record.facts, deadline_passed=context.second)
            record = replace(record, events=record.events or tuple(asking), facts=facts)
        case = _with_times(record, told, decision.schedule, context)
        if case.facts.drain_began is not None and told.facts.drain_began is None:
            waivers = (event.waiver for event in view.present if event.waiver is not None)
            begun = next((waiver.person for waiver in waivers), None)
            case = replace(case, facts=replace(case.facts, begun=begun))
        if case.facts.will_be_missed != forecast:
            # Of another forecast no warning was sent yet.
            warnings = (WILL_BE_MISSED, NO_LONGER_MISSED)
            warned = tuple(reason for reason in case.facts.warned if reason not in warnings)
            case = replace(case, facts=replace(case.facts, warned=warned, will_be_missed=forecast))
    notices: list[Notice] = []
    held = "; ".join(
        f"{hold.code}: {hold.reason[:_LONGEST_REASON]}" for hold in decision.holds[:_NAMED_AT_MOST]
    )
    late_since, missed = case.facts.deadline_passed, struck_by(case)
    if late_since is not None:
        names = ", ".join(
            f"{event.condition or event.kind} (not before {to_text(event.not_before)})"
            if event.not_before
            else event.condition or event.kind
            for event in case.events
        )
        message = f"{names or 'its event'}: {unbegun(case)}"
        message = f"{message}: {held}" if held else message
        notices.append(Notice(DEADLINE_PASSED, message, NoticeType.WARNING, once=to_text(late_since)))
    if missed is not None:
        name = missed.event.condition or missed.event.kind
        # What held it holds nothing any more, once the platform has started.
        by = f"held by {held}" if held else unbegun(case) if late_since is not None else ""
        message = (
            f"the platform started {name} at {to_text(missed.at)} while {counted(missed.pods, missed.met)}"
        )
        message = f"{message}; {by}" if by else message
        notices.append(Notice(MISSED, message, NoticeType.WARNING, once=to_text(missed.at)))
    planned = decision.schedule
    if not ends and forecast is not None and planned is not None:
        once = f"{to_text(forecast.since)} {forecast.cause}"
        if forecast.over is not None:
            once = f"{to_text(forecast.over)} {once}"
            notices.append(Notice(NO_LONGER_MISSED, planned.outlook, once=once))
        elif forecast.is_due(context.now):
            message = f"{planned.outlook}{planned.offer}"
            notices.append(Notice(WILL_BE_MISSED, message, NoticeType.WARNING, once=once))
    # What the record that this pass read says already.
    foretold = told.facts.will_be_missed == case.facts.will_be_missed
    said = {
        DEADLINE_PASSED: told.facts.deadline_passed is not None,
        MISSED: struck_by(told) is not None,
        WILL_BE_MISSED: foretold,
        NO_LONGER_MISSED: foretold,
    }
    known = {notice.reason for notice in notices if said[notice.reason]}
    pending = [each for each in notices if each.reason in known and each.reason not in told.facts.warned]
    fresh = [each for each in notices if each.reason not in known]
    if ends:
        # Nothing is left to note it in, so it is sent before the case is closed.
        uncordoned_by = decision.record.uncordoned if decision.record.dismissed else None
        decision.record = replace(
            decision.record, facts=CaseFacts(), events=(), quiet_since=None, uncordoned=uncordoned_by
        )
        decision.pending = (*pending, *fresh)
        if before.goes_on or before.facts.any:
            quiet = before.quiet_since or (context.second if over else None)
            budgets = held_by(before, context.snapshot.drains.get(node.name), context.now)
            decision.ended = replace(before, quiet_since=quiet, facts=replace(before.facts, held_by=budgets))
        return
    decision.record, decision.pending = case, tuple(pending)
    decision.news = tuple(fresh)
    if pending or fresh:
        warned = tuple(dict.fromkeys((*case.facts.warned, *(each.reason for each in (*pending, *fresh)))))
        decision.noted = replace(case, facts=replace(case.facts, warned=warned))


def left_by_case(
    record: CaseRecord,
    events: Iterable[KnownEvent],
    node: NodeFacts,
    drained: DrainProgress | None,
    context: PassContext,
) -> Survey | None:
    """Return what the drain of the case for these events finds, None if the pods were not read."""
    options = drain_options(events, context.settings, node.policies)
    if record.drain is not None:
        options = with_returns(options, record.drain, record.since, drained)
    return pods_left(node.read, options, context)


def pods_staying(
    node: NodeFacts, record: CaseRecord, context: PassContext
) -> tuple[tuple[Blocker, ...], str]:
    """Return the pods that a finished drain left on the node, and why they are not known, if so."""
    if record.drain is None or record.drain.done is None:
        return (), ""
    snapshot = context.snapshot
    unread = snapshot.problems.pods.get(node.name) or snapshot.problems.namespaces
    options = drain_options(cases.allowed(record), context.settings, node.policies)
    limit = WaitLimit(record.since or record.drain.since, context.settings.drain.pods_may_wait)
    found = pods_left(node.read, replace(options, waits=replace(options.waits, own=limit)), context)
    if found is None or unread:
        return (), unread or "they were not read"
    return (*found.kept, *found.spared), ""


def _with_times(
    record: CaseRecord, told: CaseRecord, schedule: CaseSchedule | None, context: PassContext
) -> CaseRecord:
    """Return the record with the time of its first sight, and of its first drain as planned and as begun.

    `told` is the record as this pass read it. They are set only where the record changes anyway. A case that
    has facts before it opens was seen earlier, and nobody wrote down when. Each pass plans the start of the
    drain, and the record keeps one: of when the events of the case were new, or else of when it begins.
    """
    if not record.open:
        return record
    facts, announced = record.facts, None
    if not told.open and not told.facts.any:
        announced = context.second
    begins = record.drain is not None and told.drain is None
    fresh = record.drain is None and (record.state is not told.state or record.events != told.events)
    planned = facts.planned
    if (
        schedule is not None
        and schedule.planned_start is not None
        and (fresh or (planned is None and begins))
    ):
        planned = schedule.planned_start.replace(microsecond=0)
    began = record.drain.since if begins and record.drain is not None else None
    times = replace(
        facts, announced=facts.announced or announced, planned=planned, drain_began=facts.drain_began or began
    )
    return replace(record, facts=times)


def _forecast(decision: CaseDecision, node: NodeFacts, context: PassContext) -> Forecast | None:
    """Return the forecast that the node will not be drained in time, None if it will be.

    With another cause it is another forecast. In mode Observe nothing is ours to miss. What the platform has
    started is no forecast: if pods are on the node, it is missed, and `_warnings` says so.
    """
    planned, record = decision.schedule, decision.record
    if planned is None or context.settings.mode is Mode.OBSERVE:
        return None
    if decision.begun and planned.missed and not (planned.by_pods or planned.stopped):
        return None
    dated = [judged for judged in node.current if judged.times is not None and not judged.event.started]
    ahead = [judged for judged in dated if record.facts.start_of(judged.event) is None]
    known, warned = node.case.facts.will_be_missed, node.case.facts.warned
    if not planned.missed:
        # That a forecast of which people were warned is over stays in the record of an open case, because
        # nothing else says that it was taken back.
        if known is None or planned.planned_start is None or (not ahead and known.over is None):
            return None
        if known.over is not None:
            return known if record.open or NO_LONGER_MISSED not in warned else None
        return replace(known, over=context.second) if WILL_BE_MISSED in warned else None
    if not ahead:
        return None
    # After the deadline the reason is what it was: that it has passed now is no news.
    passed = all(judged.deadline is not None and judged.deadline <= context.now for judged in ahead)
    if known is not None and known.over is None and (passed or known.cause == planned.cause):
        return known
    if known is not None and known.is_due(context.now):
        # People were warned already, and get the new reason at once.
        return Forecast(planned.cause, context.second, context.second)
    # What keeps pods does not change by itself, so nothing is gained by a wait.
    latest = None if planned.by_pods else planned.latest_start
    left = max((latest or context.second) - context.second, timedelta())
    warns = context.second + min(WARNED_AFTER, left / 3)
    return Forecast(planned.cause, context.second, warns.replace(microsecond=0))
