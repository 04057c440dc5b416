"""leftToUs: whether nobody else has the node in hand."""

from __future__ import annotations

from reconciler.engine.situation import Situation
from reconciler.model.node import AUTOSCALER_TAINT, REMEDIATOR_TAINT
from reconciler.model.plan import CheckAnswer, Verdict
from reconciler.settings.sections.others import AksRemediator


def left_to_us(situation: Situation) -> CheckAnswer:
    """Pass unless the cluster autoscaler deletes the node, or AKS's remediator has it and is left alone."""
    reasons = []
    if situation.node.has_taint(AUTOSCALER_TAINT):
        reasons.append(f"the cluster autoscaler is deleting it (taint {AUTOSCALER_TAINT})")
    leave = situation.settings.coexist.aks_remediator is AksRemediator.LEAVE
    if leave and situation.node.has_taint(REMEDIATOR_TAINT):
        reasons.append("AKS's remediator has it (coexist.aksRemediator is Leave)")
    if reasons:
        return CheckAnswer("leftToUs", Verdict.FAILED, "; ".join(reasons))
    return CheckAnswer("leftToUs", Verdict.PASSED, "")
