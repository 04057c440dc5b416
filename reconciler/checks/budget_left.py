"""budgetLeft: whether one more node may be out of service."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.holds import WaitsFor


def is_exempt(situation: Situation) -> bool:
    """Whether an event of the node never waits for a place, because the node is lost anyway."""
    return any(one.event.kind in situation.settings.budget.exempt for one in situation.asking)


@check("budgetLeft", waits_for=WaitsFor.TURN)
def budget_left(situation: Situation) -> CheckResult:
    """Pass when every limit has a free place, the node already holds one, or its event is exempt."""
    refusals = situation.places.refusals(situation.node)
    if not refusals:
        return passed()
    if is_exempt(situation):
        return passed(f"exempt from the budget: {'; '.join(refusals)}")
    return failed("; ".join(refusals), situation.places.eases_at)
