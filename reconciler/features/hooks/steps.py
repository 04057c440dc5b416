"""The checks by which hooks hold the steps of a case."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.features.hooks.holding import HookCase, follows_drain, present_hooks, reason, waiting
from reconciler.features.hooks.hook import IN_RECORD
from reconciler.model.errors import RecordUnreadable
from reconciler.model.steps import HeldStep
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, CheckType, check, failed, passed


def _hooks_done(name: str, step: HeldStep) -> CheckType:
    @check(
        name,
        ordinarily=f"no hook holds {step.words}",
        who="the owner of the hook that the reason names, which ends by itself after `hooks.timeout`; only a "
        f"hook in an annotation can be removed: `kubectl annotate node {{node}} {{keys}}/{step}.NAME-`",
        waits=True,
        step=step,
    )
    def hooks_done(situation: Situation) -> CheckResult:
        hooks = present_hooks(situation.node, situation.settings)
        if not any(hook.id.step is step for hook in hooks):
            return passed()
        try:
            begun = IN_RECORD.of(situation.record)
        except RecordUnreadable as error:
            return failed(unreadable(error))
        answers = situation.of_features.get(IN_RECORD.name, {})
        case = HookCase(situation.record, begun, situation.case, situation.settings, situation.now, answers)
        holding = waiting(step, hooks, case)
        if step is HeldStep.POST_DRAIN and not follows_drain(situation.record, situation.case):
            holding = tuple(each for each in holding if each.until is not None)
        if not holding:
            return passed()
        until = min((each.until for each in holding if each.until is not None), default=None)
        return failed(reason(step, holding, situation.settings), until)

    return hooks_done


def unreadable(error: RecordUnreadable) -> str:
    """Return why hooks hold their step although nobody knows since when, and how a person ends that."""
    return f"the record's hooks can't be read: {error}; `reconciler release NODE --reset` removes the record"


HOOKS_DONE: Mapping[HeldStep, CheckType] = {
    HeldStep.PRE_DRAIN: _hooks_done("preDrainHooksDone", HeldStep.PRE_DRAIN),
    HeldStep.POST_DRAIN: _hooks_done("postDrainHooksDone", HeldStep.POST_DRAIN),
    HeldStep.PRE_UNCORDON: _hooks_done("preUncordonHooksDone", HeldStep.PRE_UNCORDON),
}
"""The check of each step."""
