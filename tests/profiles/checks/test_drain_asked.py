"""drainAsked, by the events there are."""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind, Status
from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.profiles.case import CaseView
from tests.support import builders
from tests.support.builders import ask, event, judged, situation

PAUSES = builders.settings("events: {LiveMigration: {drain: true}}")


@pytest.mark.parametrize(
    ("events", "unknown", "verdict", "reason"),
    [
        pytest.param((), (), Verdict.FAILED, "no event", id="nothing"),
        pytest.param((judged(event()),), (), Verdict.PASSED, "Reboot requires a drain", id="an event asks"),
        pytest.param((judged(event(Kind.FREEZE)),), (), Verdict.FAILED, "is ignored", id="one does not"),
        pytest.param(
            (judged(event(Kind.LIVE_MIGRATION, status=Status.STARTED), PAUSES),),
            (),
            Verdict.FAILED,
            "a drain would come too late",
            id="one is past its use",
        ),
        pytest.param((), ("imds is silent",), Verdict.UNKNOWN, "imds is silent", id="nobody can say"),
        pytest.param((judged(event()),), ("x",), Verdict.PASSED, "Reboot", id="one asks, whoever is silent"),
    ],
)
def test_an_event_that_may_still_be_there_is_neither_yes_nor_no(
    events: tuple[JudgedEvent, ...], unknown: tuple[str, ...], verdict: Verdict, reason: str
) -> None:
    answer = ask("drainAsked", situation(None, *events, case=CaseView((), unknown)))

    assert answer.verdict is verdict
    assert reason in answer.reason
    assert not answer.holds
