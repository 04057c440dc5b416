"""plannedForLater: whether a node is in our hands for a plan that asks for nothing for now.

An offer that ended before it was taken, or a date that Azure moved away by weeks, would else keep it empty.
"""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation


@check("plannedForLater")
def planned_for_later(situation: Situation) -> CheckResult:
    """Pass when all that is left of the case is a plan of Azure's that asks for nothing for now."""
    case = situation.case
    later = bool(case.present) and all(one.event.plan and not one.asks for one in case.present)
    if later and not case.unknown and situation.record.self_service is None:
        reason = "; ".join(dict.fromkeys(one.because for one in case.present))
        return passed(reason, holds=False)
    return failed("no plan for later", holds=False)
