"""preDrainHooksDone: whether a `pre-drain` hook of the node holds the drain."""

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
