"""selfServiceDone: whether Azure has done the maintenance that we requested."""

from __future__ import annotations

from reconciler.model.moments import to_text
from reconciler.profiles.checks.self_service_due import PATIENCE, has_booted
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("selfServiceDone", ordinarily="Azure was not asked to do maintenance")
def self_service_done(situation: Situation) -> CheckResult:
    """Pass when no maintenance was requested, the node has booted since, or the request is long ago."""
    asked = situation.record.self_service
    if asked is None:
        return passed()
    request = f"asked Azure at {to_text(asked.asked)} (attempt {asked.attempt})"
    if has_booted(situation, asked):
        return passed(f"{request}, and the node has booted since")
    until = asked.asked + PATIENCE
    if situation.now >= until:
        return passed(f"{request}, but the node did not boot")
    reason = f"{request}; the node has not booted since"
    return failed(reason, until)
