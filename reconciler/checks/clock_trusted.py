"""clockTrusted: whether our clock agrees with the API server's."""

from __future__ import annotations

from datetime import timedelta

from reconciler.engine.situation import Situation
from reconciler.model.plan import CheckAnswer, Verdict

TOLERANCE = timedelta(seconds=30)


def clock_trusted(situation: Situation) -> CheckAnswer:
    """Pass when our clock is within 30 s of the API server's `Date`, or that could not be told."""
    skew = situation.skew
    if skew is None or abs(skew) <= TOLERANCE:
        return CheckAnswer("clockTrusted", Verdict.PASSED, "")
    way = "ahead of" if skew > timedelta() else "behind"
    reason = f"our clock is {abs(skew).total_seconds():.0f}s {way} the API server's: set it right"
    return CheckAnswer("clockTrusted", Verdict.FAILED, reason)
