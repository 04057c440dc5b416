"""startsAllowed: whether the mode allows a new case."""

from __future__ import annotations

from reconciler.model.holds import WaitsFor
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation
from reconciler.settings.schema import Mode


@check("startsAllowed", ordinarily="the mode allows starts", waits_for=WaitsFor.PERMISSION)
def starts_allowed(situation: Situation) -> CheckResult:
    """Pass unless the mode is Finish, which completes existing cases and starts no new ones."""
    if situation.settings.mode is Mode.FINISH:
        return failed("mode is Finish: nothing new is started")
    return passed()
