"""preUncordonHooksDone: whether a `pre-uncordon` hook of the node holds the uncordon."""

from __future__ import annotations

from reconciler.model.hooks import HookStep
from reconciler.profiles.hooks import held_step
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("preUncordonHooksDone", ordinarily="no hook holds the uncordon")
def pre_uncordon_hooks_done(situation: Situation) -> CheckResult:
    """Pass when no such hook holds the uncordon any more."""
    held = held_step(HookStep.PRE_UNCORDON, situation)
    return failed(*held) if held is not None else passed()
