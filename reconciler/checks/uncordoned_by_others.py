"""uncordonedByOthers: whether somebody made the node schedulable while it is in our hands."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation


@check("uncordonedByOthers")
def uncordoned_by_others(situation: Situation) -> CheckResult:
    """Pass when the node has no cordon any more though it is in maintenance; a fact."""
    if situation.node.unschedulable:
        return failed("it is cordoned", holds=False)
    return passed("somebody uncordoned it", holds=False)
