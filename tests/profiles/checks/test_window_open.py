"""windowOpen, by what each event may."""

from __future__ import annotations

import pytest

from reconciler.model.plan import JudgedEvent, Verdict
from tests.support import builders
from tests.support.builders import NOW, ask, event, judged, minutes, situation

LATER = builders.settings('windows: [{name: later, start: "14:00", end: "15:00"}]')
WAITS = judged(event(), LATER)
DUE = judged(event(not_before=NOW), LATER)


@pytest.mark.parametrize(
    ("events", "verdict", "reason"),
    [
        pytest.param((), Verdict.FAILED, "no event requires a drain", id="no event"),
        pytest.param((WAITS,), Verdict.FAILED, "waits for later", id="it waits"),
        pytest.param(
            (DUE,), Verdict.PASSED, "which overrules: no maintenance window is open", id="it is due"
        ),
        pytest.param((WAITS, DUE), Verdict.PASSED, "which overrules", id="one of them is due"),
        pytest.param(
            (judged(event()),),
            Verdict.PASSED,
            "there are no windows, so a drain may start at any time",
            id="any time",
        ),
    ],
)
def test_one_event_that_may_start_is_enough(
    events: tuple[JudgedEvent, ...], verdict: Verdict, reason: str
) -> None:
    answer = ask("windowOpen", situation(None, *events))

    assert answer.verdict is verdict
    assert reason in answer.reason


def test_it_says_when_the_first_of_them_may() -> None:
    sooner = judged(event(not_before=NOW + minutes(60)), LATER)

    assert ask("windowOpen", situation(None, WAITS, sooner)).until == NOW + minutes(45)
