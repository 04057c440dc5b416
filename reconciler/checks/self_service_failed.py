"""selfServiceFailed: whether Azure was asked in vain, so that the node may come back without."""

from __future__ import annotations

from reconciler.checks.self_service_due import PATIENCE, why_not_due
from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation


@check("selfServiceFailed")
def self_service_failed(situation: Situation) -> CheckResult:
    """Pass when Azure was asked in vain: it still tells of the maintenance, and nothing is left to try."""
    asked, case = situation.record.self_service, situation.case
    if asked is None or not case.present or case.unknown:
        return failed("nothing has failed", holds=False)
    if any(one.event.plan is None for one in case.present):
        because = "an event is at hand, and holds the node whatever became of the plan"
        return failed(because, holds=False)
    until = asked.asked + PATIENCE
    if situation.now < until:
        return failed("it is waited for", until, holds=False)
    if not why_not_due(situation)[0]:
        return failed("it is tried again", holds=False)
    reason = f"Azure still plans it, {asked.attempt} attempts and {PATIENCE} later"
    return passed(reason, holds=False)
