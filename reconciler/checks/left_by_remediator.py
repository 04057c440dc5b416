"""leftByRemediator: whether AKS's remediator has let go of the node."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.node import REMEDIATOR_TAINT


@check("leftByRemediator")
def left_by_remediator(situation: Situation) -> CheckResult:
    """Pass when its taint has gone: we never touch it, and never open a node that it keeps closed."""
    if situation.node.has_taint(REMEDIATOR_TAINT):
        reason = f"AKS's remediator still has it (taint {REMEDIATOR_TAINT})"
        return failed(reason)
    return passed()
