"""waitExclude: whether the last transition is long enough ago, without the time of some weekdays."""

from __future__ import annotations

from datetime import timedelta

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.features.workflows.weekly_times import reached
from reconciler.model.moments import shifted, to_text
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import WaitExcludeCheck

_AFTER = timedelta(microseconds=1)


@check_type("waitExclude", WaitExcludeCheck)
def wait_exclude(config: WaitExcludeCheck, given: CheckInput) -> CheckResult:
    """Pass when more than the duration has passed since the profile entered its state.

    No time passes on excluded days. maintenance-controller subtracts today twice if it is an excluded day,
    so that a node that has waited enough waits again; here it never does.
    """
    until = reached(given.since, config.duration, config.exclude, config.time_zone)
    state = f"{given.state} since {to_text(given.since)}"
    if until is None:
        return failed("every day is excluded, so no time ever passes")
    if given.now > until:
        return passed(state)
    return failed(f"{state}; waits until {to_text(until)}", shifted(until, _AFTER))
