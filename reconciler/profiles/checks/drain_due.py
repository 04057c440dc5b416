"""drainDue: whether a node in maintenance has to be drained for an event for which it was not drained yet."""

from __future__ import annotations

from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("drainDue")
def drain_due(situation: Situation) -> CheckResult:
    """Pass when there is such an event. It holds nothing: the checks of every start follow it."""
    reasons = dict.fromkeys(one.because for one in situation.undrained)
    if reasons:
        return passed("; ".join(reasons), holds=False)
    return failed("the drain is for every event that requires one", holds=False)
