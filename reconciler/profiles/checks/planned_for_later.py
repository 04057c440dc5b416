"""plannedForLater: whether only events are left of a case that require nothing of the node now.

Without this check, the node stays empty when an offer has ended, when Azure has moved the date by weeks, or
until another event that is announced for next week.
"""

from __future__ import annotations

from reconciler.model.moments import to_text
from reconciler.model.plan import JudgedEvent
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("plannedForLater")
def planned_for_later(situation: Situation) -> CheckResult:
    """Pass when only a plan is left of the case, and it has required nothing for the settle time."""
    case, until = situation.case, situation.settles_until
    if not case.only_later or situation.record.self_service is not None:
        return failed("no plan for later", holds=False)
    if until is not None:
        since = to_text(situation.quiet_since)
        return failed(
            f"only a plan for later is left since {since}; the node settles until {to_text(until)}", until
        )
    return passed("; ".join(dict.fromkeys(_later(one) for one in case.present)), holds=False)


def _later(one: JudgedEvent) -> str:
    if one.times is not None and one.times.kept:
        return one.times.kept
    if one.asks and one.times is not None:
        return f"a drain for {one.event.kind} starts from {to_text(one.times.earliest)} on"
    return one.because
