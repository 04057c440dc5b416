"""leftToUs: whether no other tool is working on the node."""

from __future__ import annotations

from reconciler.model.node import AUTOSCALER_TAINT, REMEDIATOR_TAINT
from reconciler.profiles.checks.approved import starting
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation
from reconciler.settings.sections.others import AksRemediator

AUTOSCALER_DELETES = f"the cluster autoscaler is deleting the node (taint {AUTOSCALER_TAINT})"


@check("leftToUs", ordinarily="no other tool is working on the node")
def left_to_us(situation: Situation) -> CheckResult:
    """Pass unless the cluster autoscaler deletes the node, AKS upgrades its pool, or its remediator works.

    An event whose latest start has come does not wait for the upgrade.
    """
    reasons = []
    events = starting(situation)
    upgrades = [one.kept.upgrade for one in events if one.kept.upgrade is not None]
    until = None
    if upgrades and len(upgrades) == len(events):
        reasons.append(upgrades[0].because)
        until = min((one.until for one in upgrades if one.until is not None), default=None)
    if situation.node.has_taint(AUTOSCALER_TAINT):
        reasons.append(AUTOSCALER_DELETES)
    leave = situation.settings.coexist.aks_remediator is AksRemediator.LEAVE
    if leave and situation.node.has_taint(REMEDIATOR_TAINT):
        reasons.append("AKS's remediator is working on the node (coexist.aksRemediator is Leave)")
    if reasons:
        return failed("; ".join(reasons), until)
    return passed()
