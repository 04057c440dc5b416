"""replacementReady: whether the replacement of the node is Ready, or the drain need not wait for it."""

from __future__ import annotations

from reconciler.profiles.checks.surge_due import is_late, why_no_surge
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("replacementReady", ordinarily="no replacement is waited for")
def replacement_ready(situation: Situation) -> CheckResult:
    """Pass when the drain need not wait: there is no surge, the replacement is Ready, or the time is up."""
    if not situation.settings.replace.surge or not situation.replacing:
        return passed()
    refusal = why_no_surge(situation)
    if refusal:
        return passed(f"no surge: {refusal}")
    if is_late(situation):
        return passed("the deadline has come before the replacement is Ready")
    assert situation.machine is not None
    pool, asked = situation.machine.pool, situation.record.replacement
    assert pool is not None
    if asked is not None and asked.wanted is not None:
        if pool.ready is not None and pool.ready >= asked.wanted:
            return passed(f"its replacement in {pool} is Ready")
        have = "an unknown number" if pool.ready is None else str(pool.ready)
        reason = f"{pool} must have {asked.wanted} machines Ready before the drain, and has {have}"
    elif situation.before_us:
        reason = f"node {situation.before_us} of {pool} is replaced first"
    else:
        reason = pool.busy or f"{pool} must have one more machine before the drain"
    until = min((one.deadline for one in situation.asking if one.deadline is not None), default=None)
    return failed(reason, until)
