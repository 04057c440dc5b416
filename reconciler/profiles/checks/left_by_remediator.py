"""leftByRemediator: whether AKS is done with the node: its remediator, and its upgrade."""

from __future__ import annotations

from reconciler.model.node import REMEDIATOR_TAINT
from reconciler.model.upgrades import upgrade_of
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("leftByRemediator", ordinarily="AKS is not working on the node")
def left_by_remediator(situation: Situation) -> CheckResult:
    """Pass without the taint and the annotations of an upgrade.

    The reconciler never removes them, and never uncordons a node that has them.
    """
    if situation.node.has_taint(REMEDIATOR_TAINT):
        reason = f"AKS's remediator is working on the node (taint {REMEDIATOR_TAINT})"
        return failed(reason)
    if situation.node.in_upgrade:
        return failed(upgrade_of(situation.node.agent_pool))
    return passed()
