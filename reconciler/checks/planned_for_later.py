"""plannedForLater: whether a node is in maintenance only for a plan that requires nothing now.

Without this check, the node stays empty when an offer has ended, or Azure has moved the date by weeks.
"""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation


@check("plannedForLater")
def planned_for_later(situation: Situation) -> CheckResult:
    """Pass when only a plan of Azure is left of the case, and it requires nothing now."""
    case = situation.case
    later = bool(case.present) and all(one.event.plan and not one.asks for one in case.present)
    if later and not case.unknown and situation.record.self_service is None:
        reason = "; ".join(dict.fromkeys(one.because for one in case.present))
        return passed(reason, holds=False)
    return failed("no plan for later", holds=False)
