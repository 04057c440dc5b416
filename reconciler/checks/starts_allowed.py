"""startsAllowed: whether the mode lets a new case begin."""

from __future__ import annotations

from reconciler.engine.situation import Situation
from reconciler.model.plan import CheckAnswer, Verdict
from reconciler.settings.schema import Mode


def starts_allowed(situation: Situation) -> CheckAnswer:
    """Pass unless the mode is Finish, which ends what is ours and begins nothing."""
    if situation.settings.mode is Mode.FINISH:
        return CheckAnswer("startsAllowed", Verdict.FAILED, "mode is Finish: nothing new is started")
    return CheckAnswer("startsAllowed", Verdict.PASSED, "")
