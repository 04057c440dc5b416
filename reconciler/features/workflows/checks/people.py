"""Checks of what people say, and of hooks."""

from __future__ import annotations

from reconciler.features.workflows.situation import WorkflowSituation, check_type
from reconciler.model.hooks import hooks_of
from reconciler.model.instructions import instructions_of
from reconciler.model.limits import first_of
from reconciler.model.moments import shifted, to_text
from reconciler.model.node import own_times
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import HooksDoneCheck, KeylessCheck


@check_type("approved", KeylessCheck)
def approved(_config: KeylessCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when `reconciler approve` was called for the node after the profile entered its state.

    So an approval is for one run of the workflow. One that can't be read, or whose time lies in the future,
    approves nothing.
    """
    prefix = situation.keys.prefix
    found = instructions_of(situation.node, prefix, situation.now).approval
    command = situation.keys.approve(situation.node.name)
    if found is None:
        return failed(f"nobody has approved it yet; {command} does")
    word = found.word
    if word.problem:
        return unknown(f"{word.problem}; {command} replaces it")
    if not found.workflows:
        return failed(f"the approval {word} is for events of the platform only; {command} renews it")
    if word.at is None or word.at > own_times(situation.now, None).latest:
        return failed(f"the approval has no time, or one in the future; {command} renews it")
    if word.at < situation.since:
        older = f"is older than the state {situation.state} (since {to_text(situation.since)})"
        return failed(f"the approval {word} {older}; {command} renews it")
    return passed(f"approved {word}", word.until)


@check_type("notAllowed", KeylessCheck)
def not_allowed(_config: KeylessCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass while an entry of `notAllowed` applies.

    A transition that must not happen then has a `!` before it.
    """
    if situation.platform is None:
        return unknown("`notAllowed` of the settings is not read")
    openness = situation.platform.settings.calendar.at(situation.now, situation.node.labels)
    if openness.not_allowed is None:
        return failed("no entry of notAllowed applies", openness.changes_at)
    return passed(openness.because, openness.changes_at)


@check_type("hooksDone", HooksDoneCheck)
def hooks_done(config: HooksDoneCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the node has no annotation `<prefix>/<step>.<name>`, and at the end of the time limit.

    The limit counts from the moment at which the profile entered its state. Hooks hold nothing either once an
    event of the platform can't wait any longer.
    """
    found = [
        hook
        for hook in hooks_of(situation.node.annotations, situation.keys.prefix)
        if hook.id.step is config.step
    ]
    if not found:
        return passed(f"no hook holds {config.step.held}")
    names = first_of([str(hook) for hook in found])
    until = shifted(situation.since, config.timeout)
    if until <= situation.now:
        return passed(f"the time of hook {names} was over at {to_text(until)}")
    if situation.platform is not None and any(
        one.cannot_wait(situation.now) for one in situation.platform.judged
    ):
        return passed(f"hook {names} is there, but an event of the platform can't wait")
    ends = f"until its owner removes the annotation, {to_text(until)} at most"
    return failed(f"hook {names} holds {config.step.held} {ends}", until)
