"""Checks of a start: whether a drain is required, and may begin now."""

from __future__ import annotations

from reconciler.model.holds import NOBODY, SETTINGS
from reconciler.model.instructions import Wait
from reconciler.model.moments import to_text
from reconciler.model.outcome import WaitsFor
from reconciler.model.plan import JudgedEvent
from reconciler.model.reconciler import FIND
from reconciler.profiles.checks.people import starting
from reconciler.profiles.checks.platform import settles
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, check, failed, passed, unknown
from reconciler.settings.schema import Mode


@check("drainAsked")
def drain_asked(situation: Situation) -> CheckResult:
    """Pass when an event requires the start of a drain. It holds nothing."""
    asking = situation.asking
    if asking:
        reason = "; ".join(dict.fromkeys(judged.because for judged in asking))
        return passed(reason, holds=False)
    if situation.case.unknown:
        # Unknown does not mean no: a node that waits for its turn continues to wait.
        reason = "; ".join(situation.case.unknown)
        return unknown(reason, holds=False)
    reason = "; ".join(judged.because for judged in situation.judged) or "no event requires a drain"
    until = min((judged.until for judged in situation.judged if judged.until), default=None)
    return failed(reason, until, holds=False)


@check("drainDue")
def drain_due(situation: Situation) -> CheckResult:
    """Pass when there is such an event. It holds nothing: the checks of every start follow it."""
    reasons = dict.fromkeys(judged.because for judged in situation.undrained)
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
    waived=True,
)
def window_open(situation: Situation) -> CheckResult:
    """Pass when an event that requires a drain may start it now. Else give what each event waits for."""
    reasons = dict.fromkeys(event.opening.reason for event in situation.start.opening)
    return _held(situation.start.for_windows) or passed("; ".join(reasons))


@check(
    "conditionOnFewNodes",
    ordinarily="no condition of the settings is on most nodes",
    waits_for=WaitsFor.PERMISSION,
    who=f"{SETTINGS}: `conditions` and their `status`; or whoever can repair most of these nodes",
)
def condition_on_few_nodes(situation: Situation) -> CheckResult:
    """Pass for an event that is no condition, and for one on half of the managed nodes at most."""
    waits = [judged.kept.common for judged in starting(situation)]
    common = [wait for wait in waits if wait is not None]
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
    waits = [judged.kept.other for judged in starting(situation)]
    older = [wait for wait in waits if wait is not None]
    return failed(older[0].because) if older else passed()


@check(
    "startPlanned",
    ordinarily="the schedule does not delay the start now",
    waits_for=WaitsFor.PERMISSION,
    who=f"{NOBODY} at the planned start; or {SETTINGS}: `start` and `ahead` of the kind",
    by_itself=True,
    waived=True,
)
def start_planned(situation: Situation) -> CheckResult:
    """Pass from the planned start on, and for an exempt event that is due.

    While no window is open, no place is free or a person keeps the drain waiting, the checks of these say so,
    and this one holds nothing.
    """
    return _held(situation.start.for_plan) or passed()


@check("plannedForLater", who=f"{NOBODY} after the settle time", by_itself=True)
def planned_for_later(situation: Situation) -> CheckResult:
    """Pass when only a plan is left of the case, and it has required nothing for the settle time."""
    case, until = situation.case, situation.settles_until
    given_up = any(offer.refused is not None for offer in situation.asked)
    if not case.only_later or given_up:
        return failed("no plan for later", holds=False)
    if until is not None:
        left = "only a plan for later is left"
        return settles(left, f"{left} since {to_text(situation.quiet_since)}", situation, until)
    return passed("; ".join(dict.fromkeys(_later(judged) for judged in case.present)), holds=False)


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
    waived=True,
)
def budget_left(situation: Situation) -> CheckResult:
    """Pass when every limit has a free place, the node already holds one, or it needs none."""
    held, refusals = _held(situation.start.for_place), situation.start.refusals
    if held is None and refusals:
        return passed(f"exempt from the budget: {refusals}")
    return held or passed()


@check(
    "spacingKept",
    ordinarily="budget.spacing holds nothing now",
    waits_for=WaitsFor.TURN,
    who=f"{NOBODY} after the spacing; or {SETTINGS}: `budget.spacing`",
    by_itself=True,
    waived=True,
)
def spacing_kept(situation: Situation) -> CheckResult:
    """Pass when `budget.spacing` has passed since the last start, or an exempt event is due.

    A node that is drained again, for another event, has had its start.
    """
    return _held(situation.start.for_spacing) or passed()


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
    return _held(situation.start.for_others) or passed()


def _held(wait: Wait | None) -> CheckResult | None:
    """Return that a start is held by this wait, None without one."""
    return failed(wait.because, wait.until) if wait is not None else None
