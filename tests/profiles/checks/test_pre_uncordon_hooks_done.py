"""preUncordonHooksDone, which no latest start ends."""

from __future__ import annotations

from reconciler.model.hooks import HookId, HookRecord, HookStep
from reconciler.model.plan import Verdict
from reconciler.model.structs import replace
from reconciler.profiles.case import CaseView
from tests.support import builders
from tests.support.builders import NOW, PREFIX, ask, minutes, node, situation


def test_a_hook_holds_the_uncordon_for_its_time_limit_whatever_the_event_says() -> None:
    hook = HookRecord(HookId(HookStep.PRE_UNCORDON, "smoke"), NOW)
    held = replace(builders.record(), hooks=(hook,))
    one = node(annotations={f"{PREFIX}/pre-uncordon.smoke": ""})
    present = CaseView((builders.judged(builders.event(not_before=NOW - minutes(1))),))
    answer = ask("preUncordonHooksDone", situation(one, held=held, case=present))

    assert (answer.verdict, answer.until) == (Verdict.FAILED, NOW + minutes(10))
