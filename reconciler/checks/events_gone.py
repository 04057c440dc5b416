"""eventsGone: whether the events of the case have gone from every source that told of them, and stay so."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed, unknown
from reconciler.engine.situation import Situation
from reconciler.model.moments import to_text


@check("eventsGone")
def events_gone(situation: Situation) -> CheckResult:
    """Pass when no event is left for the settle time; Started is not gone, and unknown is not healthy."""
    case = situation.case
    if case.present:
        told = dict.fromkeys(f"{one.event.kind} {one.event.status}" for one in case.present)
        return failed(f"still there: {', '.join(told)}")
    if case.unknown:
        return unknown("; ".join(case.unknown))
    quiet = situation.record.quiet_since or situation.now
    until = quiet + situation.settings.uncordon.settle
    if situation.now < until:
        reason = f"gone since {to_text(quiet)}; it settles until {to_text(until)}"
        return failed(reason, until)
    return passed(f"every event has gone since {to_text(quiet)}")
