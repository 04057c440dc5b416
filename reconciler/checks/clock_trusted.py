"""clockTrusted: whether our clock agrees with the API server's."""

from __future__ import annotations

from datetime import timedelta

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation

TOLERANCE = timedelta(seconds=30)


@check("clockTrusted")
def clock_trusted(situation: Situation) -> CheckResult:
    """Pass when our clock is within 30 s of the API server's `Date`, or that could not be told."""
    skew = situation.skew
    if skew is None or abs(skew) <= TOLERANCE:
        return passed()
    way = "ahead of" if skew > timedelta() else "behind"
    reason = f"our clock is {abs(skew).total_seconds():.0f}s {way} the API server's: set it right"
    return failed(reason)
