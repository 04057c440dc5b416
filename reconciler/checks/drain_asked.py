"""drainAsked: whether any event asks for a drain of this node that is not under way."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed, unknown
from reconciler.engine.situation import Situation


@check("drainAsked")
def drain_asked(situation: Situation) -> CheckResult:
    """Pass when an event wants a drain begun; a fact, nobody waits for it."""
    asking = situation.asking
    if asking:
        reason = "; ".join(dict.fromkeys(one.because for one in asking))
        return passed(reason, holds=False)
    if situation.case.unknown:
        # Unknown is not 'no': a node that waits for its turn goes on waiting.
        reason = "; ".join(situation.case.unknown)
        return unknown(reason, holds=False)
    reason = "; ".join(one.because for one in situation.judged) or "no event"
    until = min((one.until for one in situation.judged if one.until), default=None)
    return failed(reason, until, holds=False)
