"""clockTrusted: whether the local clock agrees with that of the API server."""

from __future__ import annotations

from datetime import timedelta

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.own_times import CLOCK_TOLERANCE


@check("clockTrusted", ordinarily="the local clock agrees with that of the API server")
def clock_trusted(situation: Situation) -> CheckResult:
    """Pass when the local clock is within 30 s of the API server's `Date`, or that is not known."""
    skew = situation.skew
    if skew is None or abs(skew) <= CLOCK_TOLERANCE:
        return passed()
    way = "ahead of" if skew > timedelta() else "behind"
    reason = f"the local clock is {abs(skew).total_seconds():.0f}s {way} that of the API server; correct it"
    return failed(reason)
