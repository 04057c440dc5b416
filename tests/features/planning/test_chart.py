"""The chart: windows once for each calendar, a row for each node, and signs that need no colour."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.planning.chart import chart
from reconciler.model.plan import NodePlan
from reconciler.model.schedule import CaseSchedule
from reconciler.report.lines import ASCII, BLOCKS, Line, Look, Signs
from tests.report.ahead_scene import DAY, HOUR, ahead, case, everything
from tests.support.builders import NOW


def drawn(*nodes: NodePlan, signs: Signs = ASCII, settings: str = "") -> list[Line]:
    """The chart at 80 columns; with `anchor` each column is half an hour."""
    shown = ahead(*nodes, settings=settings, until=2 * DAY)
    look = Look(NOW, ZoneInfo("UTC"), 80, signs.cut)
    return chart(shown.cases, shown.calendars, shown.until, look, signs)


def row(name: str, *nodes: NodePlan, settings: str = "") -> str:
    """The columns of one node, or of one calendar."""
    (found,) = [line.text for line in drawn(*nodes, settings=settings) if line.text[:10].strip(" !") == name]
    return found[11:]


def anchor(hours: float = 30) -> NodePlan:
    """A case that makes the chart reach so far."""
    return case("z", CaseSchedule(NOW + hours * HOUR, ends=NOW + hours * HOUR))


def at(hours: float | None) -> datetime | None:
    return None if hours is None else NOW + hours * HOUR


@pytest.mark.parametrize(
    ("start", "latest", "ends", "platform", "shown"),
    [
        pytest.param(1, None, 3, None, "  ####", id="from its start to its end"),
        pytest.param(1, None, None, None, "  #?", id="the end is not known"),
        pytest.param(1, 2, 4, 3, "  ##L#P#", id="the latest start and the platform have letters"),
        pytest.param(1, 1, 1.5, 1.25, "  #", id="the column of the start shows the start"),
        pytest.param(-1, 0, 1, None, "##", id="started: from the first column"),
        pytest.param(-1, 1, 3, 2, "####P#", id="started: no latest start any more"),
        pytest.param(-9, None, None, None, "#?", id="started: the end is not known"),
        pytest.param(-9, None, -1, None, "#", id="started: longer than expected"),
        pytest.param(None, None, None, None, "?", id="no known start"),
    ],
)
def test_a_case_is_drawn_with_its_moments(
    start: float | None, latest: float | None, ends: float | None, platform: float | None, shown: str
) -> None:
    begun = start is not None and start < 0
    plan = CaseSchedule(at(start), at(latest), ends=at(ends), because="it waits", started=begun)

    assert row("a", case("a", plan, not_before=at(platform)), anchor()) == shown


@pytest.mark.parametrize("platform", [None, 2])
def test_a_plan_of_days_is_a_span_without_a_moment_of_the_platform(platform: float | None) -> None:
    plan = CaseSchedule(plan_from=at(1), plan_until=at(3))

    assert row("a", case("a", plan, not_before=at(platform)), anchor()) == "  ===="


def test_an_end_beyond_the_chart_can_be_seen() -> None:
    beyond = row("a", case("a", CaseSchedule(NOW + 30 * HOUR, ends=NOW + 9 * DAY)))

    assert beyond.lstrip(" #") == ">"
    assert len(beyond) <= 70


def test_freezes_of_different_nodes_are_named_by_their_start() -> None:
    settings = """
notAllowed:
- {name: second, start: 2026-11-21T15:00, end: 2026-11-21T16:00, nodeSelector: {agentpool: np}}
- {name: first, start: 2026-11-21T13:00, end: 2026-11-21T14:00, nodeSelector: {agentpool: batch}}
"""
    nodes = (case("a", CaseSchedule(NOW)), case("b", CaseSchedule(NOW + HOUR)))
    shown = ahead(*nodes, settings=settings, batch=["b"])
    lines = chart(shown.cases, shown.calendars, shown.until, Look(NOW, ZoneInfo("UTC"), 80, "~"), ASCII)

    assert [line.text.split()[3] for line in lines[-2:]] == ["first", "second"]


def test_freezes_after_the_chart_are_named_the_next_ones_first_and_the_others_counted() -> None:
    settings = """
notAllowed:
- {name: now, start: 2026-11-21, end: 2026-11-21T14:00}
- {name: daily, start: "23:00", end: "24:00"}
"""
    shown = ahead(case("a", CaseSchedule(NOW + HOUR)), settings=settings, until=5 * DAY)
    lines = chart(shown.cases, shown.calendars, shown.until, Look(NOW, ZoneInfo("UTC"), 80, "~"), ASCII)

    assert [line.text for line in lines[-4:]] == [
        "x not allowed: now until Sat 21 14:00",
        "x not allowed: daily from Sat 21 23:00 until Sun 22 00:00",
        "x not allowed: daily from Sun 22 23:00 until Mon 23 00:00",
        "x not allowed: 3 more times",
    ]


def test_a_column_in_which_a_drain_may_start_for_some_of_it_is_open() -> None:
    settings = 'windows: [{name: short, start: "13:10", end: "13:20"}]'

    assert row("(short)", case("a", CaseSchedule(NOW + HOUR)), anchor(), settings=settings).startswith(
        "..+..."
    )


@pytest.mark.parametrize(("signs", "plain"), [(ASCII, True), (BLOCKS, False)])
def test_only_a_terminal_with_block_characters_gets_them(signs: Signs, plain: bool) -> None:
    shown = everything()
    look = Look(NOW, ZoneInfo("UTC"), 80, signs.cut)
    text = "".join(line.text for line in chart(shown.cases, shown.calendars, shown.until, look, signs))

    assert text.isascii() is plain
    assert ("█" in text) is not plain


def test_a_change_of_the_clocks_is_said() -> None:
    zone = ZoneInfo("Europe/Berlin")
    now = NOW.replace(month=10, day=24)
    shown = ahead(case("a", CaseSchedule(now + 20 * HOUR)), settings="", now=now, until=2 * DAY)
    lines = chart(shown.cases, shown.calendars, shown.until, Look(now, zone, 80, "~"), ASCII)

    assert lines[-1].text == "The clocks change on Sun 25 02:00 CET, from CEST to CET."
