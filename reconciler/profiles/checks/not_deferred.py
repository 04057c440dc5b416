"""notDeferred: whether no person has deferred the drain to a later moment."""

from __future__ import annotations

from reconciler.model.holds import WaitsFor
from reconciler.profiles.checks.approved import starting
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("notDeferred", ordinarily="nobody has deferred the drain", waits_for=WaitsFor.PERMISSION)
def not_deferred(situation: Situation) -> CheckResult:
    """Pass for an event whose drain is not deferred, or whose deadline demands it."""
    waits = [one.kept.deferral for one in starting(situation)]
    found = [one for one in waits if one is not None]
    if len(found) < len(waits) or not found:
        return passed()
    return failed(found[0].because, min((one.until for one in found if one.until), default=None))
