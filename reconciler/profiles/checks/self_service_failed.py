"""selfServiceFailed: whether all attempts have failed, so that the node is uncordoned."""

from __future__ import annotations

from reconciler.profiles.checks.self_service_due import PATIENCE, why_not_due
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("selfServiceFailed")
def self_service_failed(situation: Situation) -> CheckResult:
    """Pass when Azure still plans the maintenance, and there are no attempts left."""
    asked, case = situation.record.self_service, situation.case
    if asked is None or not case.present or case.unknown:
        return failed("nothing has failed", holds=False)
    if any(one.event.plan is None for one in case.present):
        because = "there is a current event, which holds the node"
        return failed(because, holds=False)
    until = asked.asked + PATIENCE
    if situation.now < until:
        return failed("the last attempt may still succeed", until, holds=False)
    if not why_not_due(situation)[0]:
        return failed("there are attempts left", holds=False)
    reason = f"Azure still plans it {PATIENCE} after attempt {asked.attempt}"
    return passed(reason, holds=False)
