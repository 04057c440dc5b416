"""Checks of hooks: each waits for those of one step."""

from __future__ import annotations

from reconciler.model.hooks import HookStep
from reconciler.profiles.hooks import held_step
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("preDrainHooksDone", ordinarily="no hook holds the drain")
def pre_drain_hooks_done(situation: Situation) -> CheckResult:
    """Pass when no such hook holds the drain any more."""
    held = held_step(HookStep.PRE_DRAIN, situation)
    return failed(*held) if held is not None else passed()


@check("postDrainHooksDone", ordinarily="no hook holds what follows the drain")
def post_drain_hooks_done(situation: Situation) -> CheckResult:
    """Pass when no such hook holds what follows the drain any more."""
    held = held_step(HookStep.POST_DRAIN, situation)
    return failed(*held) if held is not None else passed()


@check("preUncordonHooksDone", ordinarily="no hook holds the uncordon")
def pre_uncordon_hooks_done(situation: Situation) -> CheckResult:
    """Pass when no such hook holds the uncordon any more."""
    held = held_step(HookStep.PRE_UNCORDON, situation)
    return failed(*held) if held is not None else passed()
