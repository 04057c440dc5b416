"""Columns of elapsed time, and their labels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.planning.chart import Timeline, timeline

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = timedelta(hours=1)
AUTUMN = datetime(2026, 10, 23, 22, tzinfo=UTC)  # Saturday 00:00 in Berlin, a day before the clocks change
SPRING = datetime(2027, 3, 26, 23, tzinfo=UTC)


def columns_of(line: Timeline) -> dict[str, int]:
    """The labels of the axis with their columns."""
    axis, found = line.axis(), {}
    for column, character in enumerate(axis):
        if character == "|":
            found[axis[column + 1 :].partition("|")[0].strip()] = column
    return found


@pytest.mark.parametrize(("start", "days"), [(AUTUMN, (24, 25)), (SPRING, (24, 23))])
def test_a_day_of_23_or_25_hours_has_as_many_columns(start: datetime, days: tuple[int, int]) -> None:
    line = Timeline(start, HOUR, 72, BERLIN)
    labels = columns_of(line)
    midnights = [column for label, column in labels.items() if ":" not in label]

    assert [b - a for a, b in pairwise(midnights)] == list(days)
    assert [line.column(start + number * HOUR) for number in range(72)] == list(range(72))


def test_the_change_of_the_clocks_is_found() -> None:
    change = Timeline(AUTUMN, HOUR, 72, BERLIN).clock_change()

    assert change == (datetime(2026, 10, 25, 1, tzinfo=UTC), "CEST", "CET")
    assert Timeline(AUTUMN, HOUR, 20, BERLIN).clock_change() is None


@pytest.mark.parametrize(("minutes", "begins"), [(0, "|Sat 24 "), (70, "|now |02:00"), (80, "    |02:00")])
def test_the_first_column_says_now_where_there_is_room(minutes: int, begins: str) -> None:
    line = Timeline(AUTUMN + timedelta(minutes=minutes), timedelta(minutes=10), 60, BERLIN)

    assert line.axis().startswith(begins)


def test_a_round_time_that_the_clocks_skip_has_no_label() -> None:
    zone = ZoneInfo("America/Havana")  # 00:00 is skipped
    line = Timeline(datetime(2026, 3, 8, 1, tzinfo=UTC), timedelta(minutes=30), 40, zone)

    assert "Sun 08" not in line.axis()
    assert "|04:00" in line.axis()


@given(
    now=st.timedeltas(timedelta(), timedelta(days=365)).map(lambda later: AUTUMN + later),
    needed=st.timedeltas(timedelta(), timedelta(days=90)),
    more=st.timedeltas(timedelta(hours=1), timedelta(days=90)),
    width=st.integers(45, 190),
)
def test_it_fits_begins_with_now_shows_what_is_needed_and_ends_with_the_last_moment(
    now: datetime, needed: timedelta, more: timedelta, width: int
) -> None:
    until = now + max(needed, more)
    line = timeline(now, now + needed, until, width, BERLIN)

    assert 1 <= line.columns <= width
    assert line.column(now) == 0
    assert now + needed <= line.end
    assert line.end - line.step < until
    assert len(line.axis()) <= line.columns


def test_the_cells_of_a_stretch_are_those_that_it_touches() -> None:
    line = Timeline(AUTUMN, HOUR, 10, BERLIN)

    assert line.cells(AUTUMN + HOUR, AUTUMN + 2 * HOUR) == range(1, 2)
    assert line.cells(AUTUMN + HOUR / 2, AUTUMN + 1.5 * HOUR) == range(2)
    assert line.cells(AUTUMN - HOUR, AUTUMN + 99 * HOUR) == range(10)
    assert list(line.cells(AUTUMN + 20 * HOUR, AUTUMN + 21 * HOUR)) == []
    assert list(line.cells(AUTUMN + HOUR, AUTUMN + HOUR)) == []
