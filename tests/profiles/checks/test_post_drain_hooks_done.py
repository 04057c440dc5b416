"""postDrainHooksDone, which asks for the hooks of its own step, and holds until the date of the event."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.hooks import HookId, HookRecord, HookStep
from reconciler.model.plan import Verdict
from reconciler.model.record import DrainRecord
from reconciler.model.structs import replace
from reconciler.profiles.case import CaseView
from tests.support import builders
from tests.support.builders import NOW, PREFIX, ask, minutes, node, situation


@pytest.mark.parametrize(
    ("step", "verdict"),
    [("pre-drain", Verdict.PASSED), ("post-drain", Verdict.FAILED), ("pre-uncordon", Verdict.PASSED)],
)
def test_only_a_hook_of_the_step_holds_what_follows_the_drain(step: str, verdict: Verdict) -> None:
    one = node(annotations={f"{PREFIX}/{step}.flash": ""})
    drained = replace(builders.record(), drain=DrainRecord(NOW, done=NOW))
    present = CaseView((builders.judged(builders.event()),))
    answer = ask("postDrainHooksDone", situation(one, held=drained, case=present))

    assert answer.verdict is verdict


@pytest.mark.parametrize(
    ("date", "until"),
    [
        pytest.param(minutes(4), minutes(4), id="the date comes first"),
        pytest.param(minutes(30), minutes(10), id="the time limit comes first"),
        pytest.param(-minutes(1), minutes(10), id="the date was over when it began"),
    ],
)
def test_a_hook_holds_what_follows_until_the_date_of_the_event(date: timedelta, until: timedelta) -> None:
    hook = HookRecord(HookId(HookStep.POST_DRAIN, "flash"), NOW)
    one = node(annotations={f"{PREFIX}/post-drain.flash": ""})
    present = CaseView((builders.judged(builders.event(not_before=NOW + date)),))
    answer = ask(
        "postDrainHooksDone", situation(one, held=replace(builders.record(), hooks=(hook,)), case=present)
    )

    assert (answer.verdict, answer.until) == (Verdict.FAILED, NOW + until)
