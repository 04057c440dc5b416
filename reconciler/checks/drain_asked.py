"""drainAsked: whether any event asks for a drain of this node that is not under way."""

from __future__ import annotations

from reconciler.engine.situation import Situation
from reconciler.model.plan import CheckAnswer, Verdict


def drain_asked(situation: Situation) -> CheckAnswer:
    """Pass when an event wants a drain begun; a fact, nobody waits for it."""
    asking = situation.asking
    if asking:
        reason = "; ".join(dict.fromkeys(one.because for one in asking))
        return CheckAnswer("drainAsked", Verdict.PASSED, reason, holds=False)
    if situation.case.unknown:
        # Unknown is not 'no': a node that waits for its turn goes on waiting.
        reason = "; ".join(situation.case.unknown)
        return CheckAnswer("drainAsked", Verdict.UNKNOWN, reason, holds=False)
    reason = "; ".join(one.because for one in situation.judged) or "no event"
    until = min((one.until for one in situation.judged if one.until), default=None)
    return CheckAnswer("drainAsked", Verdict.FAILED, reason, until, holds=False)
