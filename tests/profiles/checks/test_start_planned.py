"""startPlanned, by the schedule and by the times of the event itself."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.event import Kind
from reconciler.model.plan import Verdict
from reconciler.model.schedule import CaseSchedule
from reconciler.model.structs import replace
from tests.support.builders import NOW, ask, event, judged, minutes, settings, situation

FAR = event(Kind.REBOOT, not_before=NOW + minutes(240))
SOON = event(Kind.REBOOT, not_before=NOW + minutes(10))
EARLIEST = NOW + minutes(240 - 15 - 60)


def test_without_a_schedule_no_drain_starts_before_its_earliest_start() -> None:
    answer = ask("startPlanned", situation(None, judged(FAR)))

    assert (answer.verdict, answer.until) == (Verdict.FAILED, EARLIEST)
    assert ask("startPlanned", situation(None, judged(SOON))).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("planned", "verdict"),
    [
        pytest.param(NOW, Verdict.PASSED, id="now"),
        pytest.param(NOW - minutes(1), Verdict.PASSED, id="a pass is late"),
        pytest.param(NOW + minutes(1), Verdict.FAILED, id="later"),
        pytest.param(None, Verdict.FAILED, id="never"),
    ],
)
def test_a_drain_starts_from_its_planned_start_on(planned: datetime | None, verdict: Verdict) -> None:
    told = replace(situation(None, judged(SOON)), schedule=CaseSchedule(planned, because="the plan"))
    answer = ask("startPlanned", told)

    assert answer.verdict is verdict
    assert answer.until == (planned if verdict is Verdict.FAILED else None)


def test_in_mode_observe_it_says_what_would_start() -> None:
    later = CaseSchedule(NOW + minutes(1), because="the plan")
    told = replace(situation(None, judged(SOON)), schedule=later)

    assert ask("startPlanned", told).reason == "its drain starts at 2026-11-21T12:01:00Z: the plan"
    observed = ask("startPlanned", replace(told, schedule=replace(later, observed=True)))
    assert observed.reason == "its drain would start at 2026-11-21T12:01:00Z: the plan"


def test_what_other_checks_report_holds_here_nothing() -> None:
    closed = settings('windows: [{name: night, start: "22:00", end: "02:00"}]')
    later = CaseSchedule(NOW + minutes(600), because="the window opens then")
    told = situation(None, judged(FAR, closed), chosen=closed)

    assert ask("startPlanned", replace(told, schedule=later)).verdict is Verdict.PASSED


def test_an_exempt_event_that_is_due_waits_for_no_plan() -> None:
    told = situation(None, judged(event(Kind.PREEMPT)))
    later = CaseSchedule(NOW + minutes(5), because="no place is free before")

    assert ask("startPlanned", replace(told, schedule=later)).verdict is Verdict.PASSED
