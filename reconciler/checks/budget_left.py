"""budgetLeft: whether one more node may be out of service."""

from __future__ import annotations

from reconciler.engine.situation import Situation
from reconciler.model.plan import CheckAnswer, Verdict


def is_exempt(situation: Situation) -> bool:
    """Whether an event asks for this drain that never waits for a place: the node is lost anyway."""
    return any(one.event.kind in situation.settings.budget.exempt for one in situation.asking)


def budget_left(situation: Situation) -> CheckAnswer:
    """Pass when every limit has a place, the node holds one already, or its event is exempt."""
    refusals = situation.places.refusals(situation.node)
    if not refusals:
        return CheckAnswer("budgetLeft", Verdict.PASSED, "")
    if is_exempt(situation):
        return CheckAnswer("budgetLeft", Verdict.PASSED, f"exempt from the budget: {'; '.join(refusals)}")
    return CheckAnswer("budgetLeft", Verdict.FAILED, "; ".join(refusals), situation.places.eases_at)
