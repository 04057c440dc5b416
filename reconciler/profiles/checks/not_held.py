"""notHeld: whether no person holds the node, so that a drain may begin."""

from __future__ import annotations

from reconciler.model.holds import WaitsFor
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("notHeld", ordinarily="nobody holds the node", waits_for=WaitsFor.PERMISSION)
def not_held(situation: Situation) -> CheckResult:
    """Pass unless a person holds the node. A hold wins over the deadline."""
    hold = situation.instructions.hold
    if hold is None:
        return passed()
    return failed(hold.words(situation.node.name), hold.word.until)
