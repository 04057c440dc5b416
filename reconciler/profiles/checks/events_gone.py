"""eventsGone: whether the events of the case are gone from every source that reported them."""

from __future__ import annotations

from reconciler.model.moments import to_text
from reconciler.profiles.plugins import CheckResult, check, failed, passed, unknown
from reconciler.profiles.situation import Situation


@check("eventsGone")
def events_gone(situation: Situation) -> CheckResult:
    """Pass after the settle time without an event. Started is not gone, and unknown is not healthy."""
    case = situation.case
    if case.present:
        names = dict.fromkeys(f"{one.event.kind} ({one.event.status})" for one in case.present)
        return failed(f"waits for the end of {', '.join(names)}")
    if case.unknown:
        return unknown("; ".join(case.unknown))
    gone, until = f"the events have been gone since {to_text(situation.quiet_since)}", situation.settles_until
    return (
        passed(gone) if until is None else failed(f"{gone}; the node settles until {to_text(until)}", until)
    )
