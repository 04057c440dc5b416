"""notStopped: whether no person has stopped the maintenance of the node that runs (`hold --now`)."""

from __future__ import annotations

from reconciler.model.holds import WaitsFor
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("notStopped", ordinarily="nobody has stopped its maintenance", waits_for=WaitsFor.PERMISSION)
def not_stopped(situation: Situation) -> CheckResult:
    """Pass unless a person holds the node with `--now`. Any other hold keeps only drains from a start."""
    hold = situation.instructions.hold
    if hold is None or not hold.stops:
        return passed()
    return failed(hold.words(situation.node.name), hold.word.until)
