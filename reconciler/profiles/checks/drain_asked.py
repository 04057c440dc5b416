"""drainAsked: whether an event requires a drain of this node that is not in progress."""

from __future__ import annotations

from reconciler.profiles.plugins import CheckResult, check, failed, passed, unknown
from reconciler.profiles.situation import Situation


@check("drainAsked")
def drain_asked(situation: Situation) -> CheckResult:
    """Pass when an event requires the start of a drain. It holds nothing."""
    asking = situation.asking
    if asking:
        reason = "; ".join(dict.fromkeys(one.because for one in asking))
        return passed(reason, holds=False)
    if situation.case.unknown:
        # Unknown does not mean no: a node that waits for its turn continues to wait.
        reason = "; ".join(situation.case.unknown)
        return unknown(reason, holds=False)
    reason = "; ".join(one.because for one in situation.judged) or "no event requires a drain"
    until = min((one.until for one in situation.judged if one.until), default=None)
    return failed(reason, until, holds=False)
