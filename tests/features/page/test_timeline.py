"""The timeline: where a moment is drawn, and which rows there are."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from jobs.runtime.process import Passed
from reconciler.features.page.facts import History
from reconciler.features.page.live import page_facts
from reconciler.features.page.timeline import MOST_ROWS, ZOOM, Bar, Chart, Mark, Row, Scale, chart, drawings
from reconciler.model.case_outcome import CaseResult
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import DrainRecord
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from tests.report.ahead_scene import case
from tests.support import builders
from tests.support.builders import NOW, minutes, record
from tests.support.cases import ended

HOUR = timedelta(hours=1)
DAY = 100 * 24 / 72


def drawn(*nodes: NodePlan, history: History | None = None, settings: str = "") -> Chart:
    plan = Plan(NOW, "Enforce", nodes)
    facts = page_facts(Passed(plan, builders.settings(settings)), history or History())
    return chart(facts, drawings(facts), Scale(NOW, facts.zone))


def only(found: Chart) -> Row:
    ((_, (row,)),) = found.pools
    return row


def percent(moment: datetime) -> float:
    return round((moment - NOW + 24 * HOUR) / (72 * HOUR) * 100, 2)


def test_a_planned_drain_shows_its_start_its_latest_start_and_the_time_of_the_platform() -> None:
    start = NOW + 9 * HOUR
    plan = CaseSchedule(start, start + HOUR, "nights", ends=start + 2 * HOUR)
    row = only(drawn(case("a", plan, not_before=start + HOUR + minutes(15))))

    assert row.bars == (Bar("plan", percent(start), round(percent(start + 2 * HOUR) - percent(start), 2)),)
    assert row.marks == (
        Mark("start", percent(start)),
        Mark("latest", percent(start + HOUR)),
        Mark("platform", percent(start + HOUR + minutes(15))),
    )
    assert row.words == (
        "Reboot: planned; planned start Sat 21 21:00; latest start Sat 21 22:00; "
        "the platform may start Sat 21 22:15; expected back Sat 21 23:00"
    )
    assert not row.missed


def test_a_drain_that_has_ended_is_drawn_to_its_end_and_the_empty_node_until_now() -> None:
    began, done = NOW - 3 * HOUR, NOW - 2 * HOUR
    node = replace(
        case("a", CaseSchedule(began, started=True)),
        record=record(drain=DrainRecord(began, done=done), since=began),
    )
    row = only(drawn(node))

    assert [(bar.kind, bar.start) for bar in row.bars] == [("drain", percent(began)), ("out", percent(done))]
    assert "drain began Sat 21 09:00; drained Sat 21 10:00" in row.words


def test_a_miss_is_marked_at_its_latest_start_and_never_before_now() -> None:
    later = only(drawn(case("a", CaseSchedule(None, NOW + HOUR, missed=True))))
    earlier = only(drawn(case("a", CaseSchedule(None, NOW - HOUR, missed=True))))

    assert later.missed
    assert Mark("miss", percent(NOW + HOUR)) in later.marks
    assert Mark("miss", percent(NOW)) in earlier.marks
    assert "will be missed Sat 21 12:00" in earlier.words


def test_cases_that_ended_in_the_last_24_hours_are_drawn() -> None:
    old = ended("old", at=NOW - timedelta(hours=25))
    good, missed = ended("good", at=NOW - 2 * HOUR), ended("missed", at=NOW - HOUR, outcome=CaseResult.MISSED)
    found = drawn(history=History(NOW - 30 * HOUR, (old, good, missed)))
    ((_, rows),) = found.pools

    past = [(row.node, row.missed, row.past) for row in rows]
    assert past == [("missed", False, "missed 1h ago"), ("good", False, "")]
    assert [bar.kind for bar in rows[1].bars] == ["drain", "out"]
    assert [mark.kind for mark in rows[1].marks] == ["platform", "start", "back"]
    assert "miss" in [mark.kind for mark in rows[0].marks]


def zoomed(*nodes: NodePlan) -> Chart:
    facts = page_facts(Passed(Plan(NOW, "Enforce", nodes), builders.settings()), History())
    return chart(facts, drawings(facts), Scale(NOW, facts.zone, *ZOOM))


def test_what_happens_in_20_minutes_is_far_from_now_in_the_next_hours() -> None:
    soon = case("a", CaseSchedule(NOW + minutes(5), NOW + minutes(5)), not_before=NOW + minutes(20))
    row = only(zoomed(soon))
    days = only(drawn(soon))

    at = {mark.kind: mark.at for mark in row.marks}
    assert at == {"start": 10.26, "latest": 10.26, "platform": 17.95}
    assert 100 * 15 / 195 < 7.7 < at["start"]
    assert days.marks[-1].at - days.marks[0].at < 0.5
    assert row.soon == "latest start in 5m"


def test_the_next_hours_have_only_nodes_to_which_something_happens() -> None:
    later = case("later", CaseSchedule(NOW + 4 * HOUR, NOW + 4 * HOUR))
    waits = case("waits", CaseSchedule())
    began = CaseSchedule(NOW - 9 * HOUR, started=True)
    drained = replace(
        case("drained", replace(began, ends=NOW + 30 * HOUR)),
        record=record(drain=DrainRecord(NOW - 9 * HOUR, done=NOW - 8 * HOUR), since=NOW - 9 * HOUR),
    )
    returns = replace(drained, node="returns", schedule=replace(began, ends=NOW + HOUR))
    hours = zoomed(later, waits, drained, returns)

    assert [row.node for _, rows in hours.pools for row in rows] == ["returns"]


def test_what_is_outside_of_the_72_hours_has_no_row() -> None:
    far = NOW + timedelta(days=5)

    assert drawn(case("a", CaseSchedule(far, far))).pools == ()


def test_a_case_without_a_known_start_has_a_row_with_a_question_mark_beside_now() -> None:
    row = only(drawn(case("a", CaseSchedule())))

    assert row.marks == (Mark("unknown", percent(NOW)),)
    assert row.words == "Reboot: waits; its start is not known"


def test_windows_and_freezes_shade_the_nodes_that_they_are_for() -> None:
    settings = """
windows: [{name: nights, start: "22:00", end: "05:00"}]
notAllowed: [{name: sale, start: 2026-11-22T00:00, end: 2026-11-22T12:00}]
"""
    (shade,) = drawn(case("a", CaseSchedule(NOW, NOW)), settings=settings).shades

    first = NOW.replace(hour=22) - timedelta(days=1)
    assert shade[0] == Bar("window", percent(first), round(percent(first + 7 * HOUR) - percent(first), 2))
    night = NOW + 12 * HOUR
    assert Bar("freeze", percent(night), round(percent(night + 12 * HOUR) - percent(night), 2)) in shade
    # The freeze takes its time out of the second night.
    assert (
        Bar("window", percent(NOW + 10 * HOUR), round(percent(night) - percent(NOW + 10 * HOUR), 2)) in shade
    )


def test_rows_that_are_left_out_are_counted() -> None:
    nodes = [case(f"n{number:03}", CaseSchedule(NOW, NOW)) for number in range(MOST_ROWS + 7)]
    found = drawn(*nodes)

    assert sum(len(rows) for _, rows in found.pools) == MOST_ROWS
    assert found.left_out == 7


def test_ticks_are_round_times_of_day_in_the_zone_also_when_the_clocks_change() -> None:
    before = datetime(2026, 10, 24, 12, 0, tzinfo=NOW.tzinfo)
    ticks = list(Scale(before, ZoneInfo("Europe/Berlin")).ticks())

    days = [tick for tick in ticks if tick.day]
    assert [tick.label for tick in days] == ["Sat 24", "Sun 25", "Mon 26"]
    # The day of the change has 25 hours.
    assert round(days[2].at - days[1].at, 1) == round(DAY * 25 / 24, 1)
    assert {tick.label for tick in ticks if not tick.day} == {"06:00", "12:00", "18:00", ""}
