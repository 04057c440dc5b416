"""othersFirst: the node on which the reconciler runs goes last."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.holds import WaitsFor


@check("othersFirst", waits_for=WaitsFor.TURN)
def others_first(situation: Situation) -> CheckResult:
    """Pass for every other node, and for our own node when no other node waits for a drain."""
    if situation.own_node and situation.waiting_nodes:
        others = f"{situation.waiting_nodes} other nodes wait for a drain"
        reason = f"the reconciler runs on it, so it goes last: {others}"
        return failed(reason)
    return passed()
