"""uncordonedByOthers: whether someone uncordoned the node during its maintenance."""

from __future__ import annotations

from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("uncordonedByOthers")
def uncordoned_by_others(situation: Situation) -> CheckResult:
    """Pass when the node is in maintenance but no longer cordoned. It holds nothing."""
    if situation.node.unschedulable:
        return failed("the node is cordoned", holds=False)
    return passed("someone uncordoned the node", holds=False)
