"""othersFirst: whether the node that we run on may go, since it goes last."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.holds import WaitsFor


@check("othersFirst", waits_for=WaitsFor.TURN)
def others_first(situation: Situation) -> CheckResult:
    """Pass for every node but our own, and for that one when no other is left to drain."""
    if situation.own_node and situation.waiting_nodes:
        reason = f"we run on it, so it goes last: {situation.waiting_nodes} other nodes are to be drained"
        return failed(reason)
    return passed()
