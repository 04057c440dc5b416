"""wait: whether the last transition of the profile is long enough ago."""

from __future__ import annotations

from datetime import timedelta

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.moments import shifted, to_text
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import WaitCheck

_AFTER = timedelta(microseconds=1)


@check_type("wait", WaitCheck)
def wait(config: WaitCheck, given: CheckInput) -> CheckResult:
    """Pass when more than the duration has passed since the profile entered its state."""
    until = shifted(given.since, config.duration)
    state = f"{given.state} since {to_text(given.since)}"
    if given.now > until:
        return passed(state)
    return failed(f"{state}; waits until {to_text(until)}", shifted(until, _AFTER))
