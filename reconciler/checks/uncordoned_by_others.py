"""uncordonedByOthers: whether somebody made the node schedulable while it is in our hands."""

from __future__ import annotations

from reconciler.engine.situation import Situation
from reconciler.model.plan import CheckAnswer, Verdict


def uncordoned_by_others(situation: Situation) -> CheckAnswer:
    """Pass when the node has no cordon any more though it is in maintenance; a fact."""
    if situation.node.unschedulable:
        return CheckAnswer("uncordonedByOthers", Verdict.FAILED, "it is cordoned", holds=False)
    return CheckAnswer("uncordonedByOthers", Verdict.PASSED, "somebody uncordoned it", holds=False)
