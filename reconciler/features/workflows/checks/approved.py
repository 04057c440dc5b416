"""approved: whether a person has approved the node since the profile entered its state."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.instructions import instructions_of
from reconciler.model.moments import to_text
from reconciler.model.own_times import own_times
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import ApprovedCheck


@check_type("approved", ApprovedCheck)
def approved(_config: ApprovedCheck, given: CheckInput) -> CheckResult:
    """Pass when `reconciler approve` was called for the node after the profile entered its state.

    So an approval is for one run of the workflow. One that can't be read, or whose time lies in the future,
    approves nothing.
    """
    prefix = given.keys.prefix
    found = instructions_of(given.node, prefix, given.now).approval
    command = given.keys.approve(given.node.name)
    if found is None:
        return failed(f"nobody has approved it yet; {command} does")
    word = found.word
    if word.problem:
        return unknown(f"{word.problem}; {command} replaces it")
    if not found.workflows:
        return failed(f"the approval {word} is for events of the platform only; {command} renews it")
    if word.at is None or word.at > own_times(given.now, None).latest:
        return failed(f"the approval has no time, or one in the future; {command} renews it")
    if word.at < given.since:
        older = f"is older than the state {given.state} (since {to_text(given.since)})"
        return failed(f"the approval {word} {older}; {command} renews it")
    return passed(f"approved {word}", word.until)
