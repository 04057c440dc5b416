"""Which cases a look ahead has, in which order, and which nodes share a calendar."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.event import Kind
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.report.ahead import Status
from reconciler.report.columns import schedule_line
from tests.report.ahead_scene import DAY, HOUR, ahead, case, everything
from tests.support.builders import NOW, event, judged, record


def test_the_misses_come_first_then_the_earliest() -> None:
    shown = everything()

    assert [one.status for one in shown.cases] == [
        Status.MISSED,
        Status.MISSED,
        Status.STARTED,
        Status.PLANNED,
        Status.PLANNED,
        Status.REPORTED,
        Status.WAITING,
    ]
    firsts = [one.first for one in shown.cases[2:] if one.first is not None]
    assert firsts == sorted(firsts)


def test_a_case_that_starts_at_the_end_is_for_later() -> None:
    nodes = [
        case("at", CaseSchedule(NOW + DAY)),
        case("before", CaseSchedule(NOW + DAY - timedelta.resolution)),
    ]
    shown = ahead(*nodes, until=DAY)

    assert [one.node for one in shown.cases] == ["before"]
    assert [one.node for one in shown.later] == ["at"]


def test_a_drain_that_would_begin_now_has_not_started() -> None:
    begins = CaseSchedule(NOW, NOW, started=True)
    runs = replace(begins, planned_start=NOW - HOUR)
    shown = ahead(case("a", begins), case("b", runs))

    assert [(one.node, one.status) for one in shown.cases] == [("b", Status.STARTED), ("a", Status.PLANNED)]


def test_a_node_whose_event_is_gone_has_the_kind_of_its_record() -> None:
    node = replace(case("a", CaseSchedule(NOW - HOUR)), events=(), record=record())

    assert ahead(node).cases[0].kinds == ("Reboot",)


def test_the_kinds_and_the_date_are_those_of_the_events_that_ask_for_the_drain() -> None:
    asking = case("a", CaseSchedule(NOW + 2 * HOUR), not_before=NOW + 3 * HOUR)
    freeze = judged(event(Kind.FREEZE, not_before=NOW + HOUR))
    both = ahead(replace(asking, events=(freeze, *asking.events))).cases[0]
    alone = ahead(replace(asking, events=(freeze,))).cases[0]

    assert (both.kinds, both.not_before) == (("Reboot",), NOW + 3 * HOUR)
    assert (alone.kinds, alone.not_before) == (("Freeze",), NOW + HOUR)


def test_nodes_that_the_same_rules_select_share_a_calendar() -> None:
    nodes = [case(name, CaseSchedule(NOW + HOUR)) for name in ("a", "b", "c")]
    shown = ahead(*nodes, batch=["b"])

    assert [one.nodes for one in shown.calendars] == [("a", "c"), ("b",)]
    assert [one.window for one in shown.calendars[1].openings[:2]] == ["batch-days", "nights"]
    assert [one.name for one in shown.calendars[0].closures] == ["sale"]


@pytest.mark.parametrize(
    ("start", "words"), [(-1, "at the latest at"), (0, None), (1, "after its latest start at")]
)
def test_a_start_after_the_latest_one_is_not_called_in_time(start: int, words: str | None) -> None:
    line = schedule_line(CaseSchedule(NOW + start * HOUR, NOW, because="no place is free before"))

    assert ("latest" in line) is (words is not None)
    assert words is None or words in line
