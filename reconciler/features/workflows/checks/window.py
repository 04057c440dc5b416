"""window: whether the settings allow drains on the node now."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import WindowCheck


@check_type("window", WindowCheck)
def window(_config: WindowCheck, given: CheckInput) -> CheckResult:
    """Pass inside a window of the settings (`windows`) and outside of every freeze (`notAllowed`)."""
    if given.platform is None:
        return unknown("the windows of the settings are not read")
    openness = given.platform.settings.calendar.at(given.now, given.node.labels)
    answer = passed if openness.open else failed
    return answer(openness.because, openness.changes_at)
