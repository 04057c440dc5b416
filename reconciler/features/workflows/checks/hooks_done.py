"""hooksDone: whether no hook of the node holds a step any more."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.hooks import hooks_of
from reconciler.model.moments import shifted, to_text
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import HooksDoneCheck

_NAMED_AT_MOST = 3


@check_type("hooksDone", HooksDoneCheck)
def hooks_done(config: HooksDoneCheck, given: CheckInput) -> CheckResult:
    """Pass when the node has no annotation `<prefix>/<step>.<name>`, and at the end of the time limit.

    The limit counts from the moment at which the profile entered its state. Hooks hold nothing either once an
    event of the platform can't wait any longer.
    """
    found = [
        hook for hook in hooks_of(given.node.annotations, given.keys.prefix) if hook.id.step is config.step
    ]
    if not found:
        return passed(f"no hook holds {config.step.held}")
    names = ", ".join(str(hook) for hook in found[:_NAMED_AT_MOST])
    names += f" and {len(found) - _NAMED_AT_MOST} more" if len(found) > _NAMED_AT_MOST else ""
    until = shifted(given.since, config.timeout)
    if until <= given.now:
        return passed(f"the time of hook {names} was over at {to_text(until)}")
    if given.platform is not None and any(one.cannot_wait(given.now) for one in given.platform.judged):
        return passed(f"hook {names} is there, but an event of the platform can't wait")
    ends = f"until its owner removes the annotation, {to_text(until)} at most"
    return failed(f"hook {names} holds {config.step.held} {ends}", until)
