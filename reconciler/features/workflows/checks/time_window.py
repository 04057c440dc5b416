"""timeWindow: whether it is inside a weekly window."""

from __future__ import annotations

from datetime import timedelta

from reconciler.calendar.occurrences import FOREVER
from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.features.workflows.weekly_times import opening
from reconciler.model.moments import to_text
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import TimeWindowCheck

_AFTER = timedelta(microseconds=1)


@check_type("timeWindow", TimeWindowCheck)
def time_window(config: TimeWindowCheck, given: CheckInput) -> CheckResult:
    """Pass after the start and before the end of the window, as maintenance-controller has it."""
    run = opening(config, given.now)
    if run is None:
        return failed("the window never opens within two years")
    if run.start < given.now:
        end = run.end if run.end != FOREVER else None
        return passed(f"the window is open until {to_text(end)}" if end else "the window is always open", end)
    return failed(f"the window opens at {to_text(run.start)}", run.start + _AFTER)
