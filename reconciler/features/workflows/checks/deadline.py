"""deadline: whether an event of the node can't wait any longer."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.moments import shifted, to_text
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import DeadlineCheck


@check_type("deadline", DeadlineCheck)
def deadline(config: DeadlineCheck, given: CheckInput) -> CheckResult:
    """Pass from `within` before the first deadline of the node's events on."""
    platform = given.platform
    if platform is None:
        return unknown("the events of the platform are not read")
    asking = [one for one in platform.judged if one.asks and one.starts]
    started = [one for one in asking if one.event.started]
    if started:
        return passed(f"{started[0].event.kind} has started")
    first = min((one.deadline for one in asking if one.deadline is not None), default=None)
    if first is None:
        if given.silent:
            return unknown("; ".join(given.silent))
        return failed("no event of the node has a deadline")
    begins = shifted(first, -config.within)
    if begins <= given.now:
        return passed(f"the deadline is {to_text(first)}")
    return failed(f"the deadline is {to_text(first)}, which is later than {to_text(given.now)}", begins)
