"""Checks of a start: whether a drain is required, and may begin now."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.calendar.values import format_duration
from reconciler.model.holds import NOBODY, SETTINGS
from reconciler.model.limits import count_of
from reconciler.model.moments import has_come, to_text
from reconciler.model.node import Node
from reconciler.model.outcome import WaitsFor
from reconciler.model.plan import JudgedEvent
from reconciler.model.reconciler import FIND
from reconciler.profiles.checks.people import starting
from reconciler.profiles.checks.platform import settles
from reconciler.profiles.plugins import CheckResult, check, failed, passed, unknown
from reconciler.profiles.situation import Situation
from reconciler.settings.schema import Mode


@check("drainAsked")
def drain_asked(situation: Situation) -> CheckResult:
    """Pass when an event requires the start of a drain. It holds nothing."""
    asking = situation.asking
    if asking:
        reason = "; ".join(dict.fromkeys(one.because for one in asking))
        return passed(reason, holds=False)
    if situation.case.unknown:
        # Unknown does not mean no: a node that waits for its turn continues to wait.
        reason = "; ".join(situation.case.unknown)
        return unknown(reason, holds=False)
    reason = "; ".join(one.because for one in situation.judged) or "no event requires a drain"
    until = min((one.until for one in situation.judged if one.until), default=None)
    return failed(reason, until, holds=False)


@check("drainDue")
def drain_due(situation: Situation) -> CheckResult:
    """Pass when there is such an event. It holds nothing: the checks of every start follow it."""
    reasons = dict.fromkeys(one.because for one in situation.undrained)
    if reasons:
        return passed("; ".join(reasons), holds=False)
    return failed("the drain is for every event that requires one", holds=False)


@check(
    "startsAllowed",
    ordinarily="the mode allows starts",
    waits_for=WaitsFor.PERMISSION,
    who=f"{SETTINGS}: `mode: Enforce` starts drains again",
)
def starts_allowed(situation: Situation) -> CheckResult:
    """Pass unless the mode is Finish, which completes existing cases and starts no new ones."""
    if situation.settings.mode is Mode.FINISH:
        return failed("mode is Finish: nothing new is started")
    return passed()


@check(
    "windowOpen",
    waits_for=WaitsFor.PERMISSION,
    who=f"{NOBODY} when a window opens; or {SETTINGS}: `windows`, `notAllowed`, `calendars`",
    by_itself=True,
)
def window_open(situation: Situation) -> CheckResult:
    """Pass when an event that requires a drain may start it now. Else give what each event waits for."""
    asking = situation.undrained
    starting = [event for event in asking if event.opening.allowed]
    if starting:
        reason = "; ".join(dict.fromkeys(event.opening.reason for event in starting))
        return passed(reason)
    # The drain of a node that drains, or is about to, is for every event that requires one.
    done = "no other event requires a drain" if situation.asking else "no event requires a drain"
    reason = "; ".join(dict.fromkeys(event.opening.words for event in asking)) or done
    until = min((one.until for one in asking if one.until), default=None)
    return failed(reason, until)


@check(
    "conditionOnFewNodes",
    ordinarily="no condition of the settings is on most nodes",
    waits_for=WaitsFor.PERMISSION,
    who=f"{SETTINGS}: `conditions` and their `status`; or whoever can repair most of these nodes",
)
def condition_on_few_nodes(situation: Situation) -> CheckResult:
    """Pass for an event that is no condition, and for one on half of the managed nodes at most."""
    waits = [one.kept.common for one in starting(situation)]
    common = [one for one in waits if one is not None]
    if len(common) < len(waits) or not common:
        return passed()
    return failed("; ".join(dict.fromkeys(one.because for one in common)))


@check(
    "onlyReconciler",
    ordinarily="no older reconciler acts on the nodes",
    waits_for=WaitsFor.PERMISSION,
    who=f"whoever installed two reconcilers: `{FIND}` shows both; uninstall one of them",
)
def only_reconciler(situation: Situation) -> CheckResult:
    """Pass unless another reconciler, whose lock is older, acts on the same nodes."""
    waits = [one.kept.other for one in starting(situation)]
    older = [one for one in waits if one is not None]
    return failed(older[0].because) if older else passed()


@check(
    "startPlanned",
    ordinarily="the schedule does not delay the start now",
    waits_for=WaitsFor.PERMISSION,
    who=f"{NOBODY} at the planned start; or {SETTINGS}: `start` and `ahead` of the kind",
    by_itself=True,
)
def start_planned(situation: Situation) -> CheckResult:
    """Pass from the planned start on, and for an exempt event that is due.

    While no window is open, no place is free or a person keeps the drain waiting, the checks of these say so,
    and this one holds nothing.
    """
    unplanned_from = situation.exempt.places
    if has_come(unplanned_from, situation.now) or not any(
        event.opening.allowed and not event.kept.waits for event in situation.undrained
    ):
        return passed()
    early = [
        event.times.earliest
        for event in situation.undrained
        if event.times is not None and event.opening.allowed
    ]
    first = min(early, default=situation.now)
    plan = situation.schedule
    if plan is None:
        if first <= situation.now:
            return passed()
        return failed(f"a drain starts from {to_text(first)} on", first)
    if plan.planned_start is not None and plan.planned_start <= situation.now:
        return passed()
    if first <= situation.now and situation.places.refusals(situation.node):
        return passed()
    if plan.planned_start is None:
        return failed(plan.because, unplanned_from)
    until = min(moment for moment in (plan.planned_start, unplanned_from) if moment)
    starts = f"its drain {'would start' if plan.observed else 'starts'} at {to_text(plan.planned_start)}"
    if plan.missed:
        # Pods that stay do not make the start late.
        return failed(starts if plan.by_pods else f"{starts}, too late", until)
    return failed(f"{starts}: {plan.because}", until)


@check("plannedForLater", who=f"{NOBODY} after the settle time", by_itself=True)
def planned_for_later(situation: Situation) -> CheckResult:
    """Pass when only a plan is left of the case, and it has required nothing for the settle time."""
    case, until = situation.case, situation.settles_until
    if not case.only_later or situation.record.self_service is not None:
        return failed("no plan for later", holds=False)
    if until is not None:
        left = "only a plan for later is left"
        return settles(left, f"{left} since {to_text(situation.quiet_since)}", situation, until)
    return passed("; ".join(dict.fromkeys(_later(one) for one in case.present)), holds=False)


def _later(one: JudgedEvent) -> str:
    if one.times is not None and one.times.kept:
        return one.times.kept
    if one.asks and one.times is not None:
        return f"a drain for {one.event.kind} starts from {to_text(one.times.earliest)} on"
    return one.because


@check(
    "budgetLeft",
    ordinarily="the budget has a place for the node",
    waits_for=WaitsFor.TURN,
    who="whoever can bring these nodes back into service; or "
    f"{SETTINGS}: `budget.maxUnavailable`, `perZone`, `perPool`",
    by_itself=True,
)
def budget_left(situation: Situation) -> CheckResult:
    """Pass when every limit has a free place, the node already holds one, or it needs none."""
    return place_for(situation.node, situation) or passed()


def place_for(node: Node, situation: Situation) -> CheckResult | None:
    """Return what the limits say of one more node out of service, None where all have a free place."""
    refusals = situation.places.refusals(node)
    if not refusals:
        return None
    exempt_from = situation.exempt.places
    if has_come(exempt_from, situation.now):
        return passed(f"exempt from the budget: {'; '.join(refusals)}")
    moments = (situation.places.eases_at, exempt_from)
    return failed("; ".join(refusals), min((one for one in moments if one), default=None))


@check(
    "spacingKept",
    ordinarily="budget.spacing holds nothing now",
    waits_for=WaitsFor.TURN,
    who=f"{NOBODY} after the spacing; or {SETTINGS}: `budget.spacing`",
    by_itself=True,
)
def spacing_kept(situation: Situation) -> CheckResult:
    """Pass when `budget.spacing` has passed since the last start, or an exempt event is due.

    A node that is drained again, for another event, has had its start.
    """
    if situation.record.drain is not None:
        return passed()
    spacing, last, now = situation.settings.budget.spacing, situation.ledger.last_start, situation.now
    if spacing <= timedelta() or last is None or now >= last + spacing:
        return passed()
    exempt_from = situation.exempt.spacing
    if has_come(exempt_from, now):
        return passed()
    until = min(moment for moment in (last + spacing, exempt_from) if moment)
    reason = f"the last start was at {to_text(last)}, and budget.spacing is {format_duration(spacing)}"
    return failed(reason, until)


def first_lost_from(events: Iterable[JudgedEvent]) -> datetime | None:
    """Return from when on the node may be lost because of one of the events (UTC), None if not known."""
    moments = (one.lost_from for one in events if one.asks and one.starts)
    return min((at for at in moments if at is not None), default=None)


@check(
    "othersFirst",
    ordinarily="no other node goes before it",
    waits_for=WaitsFor.TURN,
    who=f"{NOBODY} when the other nodes are drained",
    by_itself=True,
)
def others_first(situation: Situation) -> CheckResult:
    """Pass for every other node, and for our own node when no other node waits for a drain.

    A drain that is stuck is not waited for, and nothing is once our own node may be lost at any moment.
    """
    if any(one.cannot_wait(situation.now) for one in situation.judged):
        return passed()
    if situation.own_node and situation.others.waiting:
        reason = (
            f"the reconciler runs on it, so it goes last: "
            f"{count_of(situation.others.waiting, 'other node', 'wait')} for a drain"
        )
        moments = (first_lost_from(situation.judged), situation.others.stuck_at)
        return failed(reason, min((at for at in moments if at is not None), default=None))
    return passed()
