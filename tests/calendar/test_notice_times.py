"""When a notice is due: the three schedules of maintenance-controller, without its mistakes about days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reconciler.calendar.notice_times import Once, Past, Periodic, Schedule, Weekly, due, next_due
from reconciler.calendar.values import TimeOfDay, parse_days, parse_time

NOON = TimeOfDay(12 * 3600)
MONDAYS = Weekly(NOON, frozenset({0}))
HOURLY = Periodic(timedelta(hours=1))
NOW = datetime(2022, 2, 21, 13, tzinfo=UTC)  # a Monday
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("now", "last", "expected"),
    [
        pytest.param(NOW + timedelta(hours=22), NOW - 3 * HOUR, False, id="another weekday"),
        pytest.param(NOW - 2 * HOUR, NOW - 27 * HOUR, False, id="before the time of day"),
        pytest.param(NOW, None, True, id="never sent"),
        pytest.param(NOW, NOW - timedelta(minutes=30), False, id="sent on this day"),
        pytest.param(NOW, NOW - timedelta(days=7), True, id="sent a week ago"),
        pytest.param(NOW, NOW - timedelta(days=28), True, id="sent a month ago"),
    ],
)
def test_a_weekly_notice_comes_once_on_its_day(now: datetime, last: datetime | None, expected: bool) -> None:
    assert due(MONDAYS, now, Past(last=last)) is expected


def test_the_same_day_of_another_month_is_another_day() -> None:
    """maintenance-controller compares the day of the month alone."""
    daily = Weekly(NOON)
    first_of_march = datetime(2022, 3, 1, 12, tzinfo=UTC)

    assert due(daily, datetime(2022, 4, 1, 12, tzinfo=UTC), Past(last=first_of_march))
    assert due(daily, first_of_march, Past())


def test_a_weekly_notice_is_of_the_day_in_its_zone() -> None:
    auckland = Weekly(parse_time("08:00"), parse_days("Mon-Fri"), ZoneInfo("Pacific/Auckland"))
    monday = datetime(2026, 11, 22, 19, 0, tzinfo=UTC)  # 08:00 in Auckland, on Monday

    assert not due(auckland, monday - timedelta(seconds=1), Past())
    assert due(auckland, monday, Past())
    assert not due(auckland, monday + HOUR, Past(last=monday))
    assert next_due(auckland, monday + HOUR, Past(last=monday)) == monday + timedelta(days=1)


def test_the_first_time_from_a_moment_on_is_that_moment_or_later() -> None:
    at_noon = NOW - HOUR

    assert MONDAYS.first_from(at_noon) == at_noon
    assert MONDAYS.first_from(NOW) == at_noon + timedelta(days=7)


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        pytest.param(Past(NOW - timedelta(minutes=5), NOW - timedelta(minutes=1)), True, id="changed"),
        pytest.param(Past(None, NOW), True, id="changed, and never sent"),
        pytest.param(Past(NOW - timedelta(minutes=59), NOW - HOUR), False, id="within the interval"),
        pytest.param(Past(NOW - HOUR, NOW - 2 * HOUR), True, id="after the interval"),
        pytest.param(Past(NOW - HOUR, NOW - 2 * HOUR, at_rest=True), False, id="at rest"),
        pytest.param(Past(NOW - HOUR, NOW, at_rest=True), True, id="came to rest"),
        pytest.param(Past(NOW + HOUR, NOW - HOUR), True, id="a clock was ahead"),
    ],
)
def test_a_periodic_notice_comes_at_each_change_and_after_each_interval(past: Past, expected: bool) -> None:
    assert due(HOURLY, NOW, past) is expected


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        pytest.param(Past(), False, id="nothing changed"),
        pytest.param(Past(changed=NOW - timedelta(minutes=59)), False, id="within the delay"),
        pytest.param(Past(changed=NOW - HOUR), True, id="after the delay"),
        pytest.param(Past(NOW - timedelta(minutes=1), NOW - HOUR), False, id="sent since the change"),
        pytest.param(Past(NOW - 2 * HOUR, NOW - HOUR), True, id="sent before the change"),
    ],
)
def test_a_single_notice_comes_once_after_its_delay(past: Past, expected: bool) -> None:
    assert due(Once(HOUR), NOW, past) is expected


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (HOURLY, "every 1h"),
        (Weekly(NOON, frozenset({0, 1, 2})), "Mon-Wed at 12:00"),
        (Once(HOUR), "once, 1h later"),
    ],
)
def test_a_schedule_has_words(schedule: Schedule, words: str) -> None:
    assert str(schedule) == words
