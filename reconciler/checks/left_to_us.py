"""leftToUs: whether nobody else has the node in hand."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.node import AUTOSCALER_TAINT, REMEDIATOR_TAINT
from reconciler.settings.sections.others import AksRemediator

AUTOSCALER_DELETES = f"the cluster autoscaler is deleting it (taint {AUTOSCALER_TAINT})"


@check("leftToUs")
def left_to_us(situation: Situation) -> CheckResult:
    """Pass unless the cluster autoscaler deletes the node, or AKS's remediator has it and is left alone."""
    reasons = []
    if situation.node.has_taint(AUTOSCALER_TAINT):
        reasons.append(AUTOSCALER_DELETES)
    leave = situation.settings.coexist.aks_remediator is AksRemediator.LEAVE
    if leave and situation.node.has_taint(REMEDIATOR_TAINT):
        reasons.append("AKS's remediator has it (coexist.aksRemediator is Leave)")
    if reasons:
        return failed("; ".join(reasons))
    return passed()
