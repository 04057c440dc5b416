"""budgetLeft: whether one more node may be out of service."""

from __future__ import annotations

from reconciler.model.holds import WaitsFor
from reconciler.profiles.exemption import exempt_from, is_exempt
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("budgetLeft", ordinarily="the budget has a place for the node", waits_for=WaitsFor.TURN)
def budget_left(situation: Situation) -> CheckResult:
    """Pass when every limit has a free place, the node already holds one, or it needs none."""
    refusals = situation.places.refusals(situation.node)
    if not refusals:
        return passed()
    if is_exempt(situation):
        return passed(f"exempt from the budget: {'; '.join(refusals)}")
    moments = (situation.places.eases_at, exempt_from(situation))
    return failed("; ".join(refusals), min((one for one in moments if one), default=None))
