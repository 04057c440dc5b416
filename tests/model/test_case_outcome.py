"""What became of a case says whether its node was drained before the platform struck."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.case_outcome import CaseOutcome, CaseResult, InTime, outcome_at_end
from reconciler.model.record import CaseFacts, CaseRecord, PlatformStart
from tests.support import builders
from tests.support.builders import NOW, known

LATER = NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("outcome", "in_time"),
    [
        pytest.param(CaseOutcome(CaseResult.DRAINED, NOW, LATER, 0), InTime.YES, id="drained before"),
        pytest.param(CaseOutcome(CaseResult.DRAINED, None, NOW, 0), InTime.YES, id="nothing to drain"),
        pytest.param(CaseOutcome(CaseResult.MISSED, None, NOW, 2), InTime.NO, id="pods were met"),
        pytest.param(CaseOutcome(CaseResult.MISSED, None, NOW, None), InTime.UNKNOWN, id="nobody counted"),
        pytest.param(CaseOutcome(CaseResult.LATE, LATER, NOW), InTime.NO, id="drained after the start"),
        pytest.param(CaseOutcome(CaseResult.LATE, LATER, NOW, 0), InTime.YES, id="late, and no pod was met"),
        pytest.param(
            CaseOutcome(CaseResult.LATE, NOW, LATER), InTime.YES, id="after the date, before the start"
        ),
        pytest.param(
            CaseOutcome(CaseResult.LATE, NOW), InTime.UNKNOWN, id="after the date, no start is known"
        ),
        pytest.param(CaseOutcome(CaseResult.CANCELLED, NOW), InTime.UNKNOWN, id="cancelled"),
        pytest.param(CaseOutcome(CaseResult.STOPPED, NOW), InTime.UNKNOWN, id="stopped"),
    ],
)
def test_in_time(outcome: CaseOutcome, in_time: InTime) -> None:
    assert outcome.in_time is in_time


@pytest.mark.parametrize(
    ("case", "result"),
    [
        pytest.param(builders.record(), CaseResult.STOPPED, id="the event is still announced"),
        pytest.param(builders.record(quiet_since=NOW), CaseResult.CANCELLED, id="the event is gone"),
        pytest.param(
            replace(builders.record(), facts=CaseFacts((PlatformStart(known(), LATER, 0),))),
            CaseResult.DRAINED,
            id="the event has started",
        ),
        pytest.param(CaseRecord(), CaseResult.STOPPED, id="nothing is known"),
    ],
)
def test_of_an_event_that_is_still_announced_nobody_knows_the_end(
    case: CaseRecord, result: CaseResult
) -> None:
    assert outcome_at_end(case).result is result
