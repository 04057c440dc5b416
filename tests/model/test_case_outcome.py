"""What became of a case says whether its node was drained before the platform struck."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.case_outcome import CaseResult, InTime, outcome_at_end
from reconciler.model.record import CaseFacts, CaseRecord, PlatformStart
from reconciler.model.values import replace
from tests.support import builders
from tests.support.builders import NOW, known

LATER = NOW + timedelta(minutes=1)


def test_only_a_node_that_was_drained_before_its_date_was_in_time() -> None:
    found = {one: one.in_time for one in CaseResult}

    assert {one for one in found if found[one] is InTime.YES} == {CaseResult.DRAINED}
    assert {one for one in found if found[one] is InTime.NO} == {CaseResult.LATE, CaseResult.MISSED}
    assert [one for one in CaseResult if one.good is (found[one] is InTime.NO)] == []


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
