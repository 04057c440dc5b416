"""clockTrusted: whether the answers of the API server agree about the time."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.own_times import CLOCK_TOLERANCE
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("clockTrusted", ordinarily="the answers of the API server agree about the time")
def clock_trusted(situation: Situation) -> CheckResult:
    """Pass when no answer of the last minute differs by more than 30 s from the time of the pass.

    The local clock does not matter. Without any answer that has a `Date`, the check passes.
    """
    skew = situation.skew
    if skew is None or abs(skew) <= CLOCK_TOLERANCE:
        return passed()
    way = "behind" if skew > timedelta() else "ahead of"
    away = f"{abs(skew).total_seconds():.0f}s {way} others of the last minute"
    return failed(f"answers of the API server are {away}; correct the clocks of its machines")
