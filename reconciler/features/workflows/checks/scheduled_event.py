"""scheduledEvent: whether the platform reports maintenance of the node."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import ScheduledEventCheck


@check_type("scheduledEvent", ScheduledEventCheck)
def scheduled_event(config: ScheduledEventCheck, given: CheckInput) -> CheckResult:
    """Pass when a source reports an event of the node that counts.

    Without one, a source that can't be read makes the answer unknown: it may hide an event.
    """
    platform = given.platform
    if platform is None:
        return unknown("the events of the platform are not read")
    counted = [
        one
        for one in platform.judged
        if (not config.kinds or one.event.kind in config.kinds) and (one.asks or not config.drains)
    ]
    if counted:
        return passed("; ".join(dict.fromkeys(one.because for one in counted)))
    if given.silent:
        return unknown("; ".join(given.silent))
    other = "; ".join(dict.fromkeys(one.because for one in platform.judged))
    later = min((one.until for one in platform.judged if one.until), default=None)
    return failed(f"no event counts: {other}" if other else "no event is reported", later)
