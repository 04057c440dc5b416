"""leftByRemediator: whether AKS's remediator has removed its taint."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.node import REMEDIATOR_TAINT


@check("leftByRemediator", ordinarily="AKS's remediator is not working on the node")
def left_by_remediator(situation: Situation) -> CheckResult:
    """Pass without the taint. The reconciler never removes it, and never uncordons a node that has it."""
    if situation.node.has_taint(REMEDIATOR_TAINT):
        reason = f"AKS's remediator is working on the node (taint {REMEDIATOR_TAINT})"
        return failed(reason)
    return passed()
