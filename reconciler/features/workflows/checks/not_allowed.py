"""notAllowed: whether a freeze of the settings applies to the node now."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import NotAllowedCheck


@check_type("notAllowed", NotAllowedCheck)
def not_allowed(_config: NotAllowedCheck, given: CheckInput) -> CheckResult:
    """Pass while an entry of `notAllowed` applies.

    A transition that must not happen then has a `!` before it.
    """
    if given.platform is None:
        return unknown("`notAllowed` of the settings is not read")
    openness = given.platform.settings.calendar.at(given.now, given.node.labels)
    if openness.not_allowed is None:
        return failed("no entry of notAllowed applies", openness.changes_at)
    return passed(openness.because, openness.changes_at)
