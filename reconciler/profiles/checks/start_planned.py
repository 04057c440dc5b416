"""startPlanned: whether the schedule plans the start of the drain for now, and not for later."""

from __future__ import annotations

from reconciler.model.holds import WaitsFor
from reconciler.model.moments import to_text
from reconciler.profiles.exemption import exempt_from, is_exempt
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("startPlanned", ordinarily="the schedule does not delay the start now", waits_for=WaitsFor.PERMISSION)
def start_planned(situation: Situation) -> CheckResult:
    """Pass from the planned start on, and for an exempt event that is due.

    While no window is open, no place is free or a person keeps the drain waiting, the checks of these say so,
    and this one holds nothing.
    """
    if is_exempt(situation) or not any(one.open and not one.kept.waits for one in situation.undrained):
        return passed()
    early = [one.times.earliest for one in situation.undrained if one.times is not None and one.open]
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
        return failed(plan.because, exempt_from(situation))
    until = min(one for one in (plan.planned_start, exempt_from(situation)) if one)
    starts = f"its drain {'would start' if plan.observed else 'starts'} at {to_text(plan.planned_start)}"
    if plan.missed:
        # Pods that stay do not make the start late.
        return failed(starts if plan.by_pods else f"{starts}, too late", until)
    return failed(f"{starts}: {plan.because}", until)
