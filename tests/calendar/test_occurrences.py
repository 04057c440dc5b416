"""Rules in wall-clock words, expanded to UTC: nights in which the clocks change, cron's own rules, joins."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from reconciler.calendar.occurrences import BEGINNING, FOREVER, Cron, Once, Run, Times, Weekly
from reconciler.calendar.values import parse_days, parse_time


def utc(text: str) -> datetime:
    """Read a moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def weekly(days: str, start: str, end: str, zone: str) -> Weekly:
    """Build a weekly rule from words."""
    return Weekly(parse_days(days), parse_time(start), parse_time(end), ZoneInfo(zone))


def cron(schedule: str, duration: timedelta, zone: str = "UTC") -> Cron:
    """Build a cron rule from words."""
    return Cron(schedule, duration, ZoneInfo(zone))


def first(times: Times, since: str, count: int = 1) -> list[tuple[str, str]]:
    """Return the first runs that end after a moment, written in UTC without the zone."""
    runs = islice(times.runs(utc(since)), count)
    return [(f"{run.start:%Y-%m-%dT%H:%M}", f"{run.end:%Y-%m-%dT%H:%M}") for run in runs]


@pytest.mark.parametrize(
    ("rule", "since", "run"),
    [
        pytest.param(
            weekly("sat", "22:00", "05:00", "Europe/Berlin"),
            "2026-03-28T20:00",
            ("2026-03-28T21:00", "2026-03-29T03:00"),
            id="in spring a night is an hour shorter and still ends at 05:00",
        ),
        pytest.param(
            weekly("sat", "22:00", "05:00", "Europe/Berlin"),
            "2026-10-24T12:00",
            ("2026-10-24T20:00", "2026-10-25T04:00"),
            id="in autumn it is an hour longer and still ends at 05:00",
        ),
        pytest.param(
            weekly("sun", "02:30", "05:00", "Europe/Berlin"),
            "2026-03-29T00:00",
            ("2026-03-29T01:30", "2026-03-29T03:00"),
            id="a start that is skipped moves forward by the gap",
        ),
        pytest.param(
            weekly("sun", "01:00", "02:30", "Europe/Berlin"),
            "2026-03-29T00:00",
            ("2026-03-29T00:00", "2026-03-29T01:30"),
            id="as does an end",
        ),
        pytest.param(
            weekly("sun", "02:30", "03:00", "Europe/Berlin"),
            "2026-03-29T00:00",
            ("2026-04-05T00:30", "2026-04-05T01:00"),
            id="a window that is skipped as a whole is not there that day",
        ),
        pytest.param(
            weekly("sun", "02:30", "03:30", "Europe/Berlin"),
            "2026-10-24T12:00",
            ("2026-10-25T00:30", "2026-10-25T02:30"),
            id="a start that comes twice is the first",
        ),
        pytest.param(
            weekly("sun", "01:00", "02:30", "Europe/Berlin"),
            "2026-10-24T12:00",
            ("2026-10-24T23:00", "2026-10-25T00:30"),
            id="an end that comes twice is the first, too",
        ),
        pytest.param(
            weekly("sun", "01:00", "02:00", "America/New_York"),
            "2026-11-01T00:00",
            ("2026-11-01T05:00", "2026-11-01T07:00"),
            id="New York's repeated hour belongs to the window that spans it",
        ),
        pytest.param(
            weekly("sun", "01:45", "02:15", "Australia/Lord_Howe"),
            "2026-10-03T12:00",
            ("2026-10-03T15:15", "2026-10-03T15:45"),
            id="Lord Howe's clocks skip half an hour",
        ),
        pytest.param(
            weekly("sun", "00:00", "24:00", "Europe/Berlin"),
            "2026-10-24T12:00",
            ("2026-10-24T22:00", "2026-10-25T23:00"),
            id="that Sunday has 25 hours",
        ),
        pytest.param(
            weekly("fri", "22:00", "05:00", "UTC"),
            "2026-11-28T03:00",
            ("2026-11-27T22:00", "2026-11-28T05:00"),
            id="past midnight it is still Friday's, and gives its real start",
        ),
        pytest.param(
            weekly("fri-sun", "00:00", "24:00", "UTC"),
            "2026-11-29T12:00",
            ("2026-11-27T00:00", "2026-11-30T00:00"),
            id="whole days that follow each other are one run",
        ),
        pytest.param(
            cron("30 2 * * *", timedelta(hours=1), "Europe/Berlin"),
            "2026-03-29T00:00",
            ("2026-03-29T01:00", "2026-03-29T02:00"),
            id="cron in the gap fires right after it, and lasts its length",
        ),
        pytest.param(
            cron("30 2 * * *", timedelta(hours=3), "Europe/Berlin"),
            "2026-10-24T12:00",
            ("2026-10-25T00:30", "2026-10-25T03:30"),
            id="cron in the repeated hour fires once, and lasts elapsed time",
        ),
        pytest.param(
            cron("0 2 * * 6#1", timedelta(hours=4)),
            "2026-11-21T00:00",
            ("2026-12-05T02:00", "2026-12-05T06:00"),
            id="the first Saturday of a month",
        ),
        pytest.param(
            cron("0 2 * * 7", timedelta(hours=1)),
            "2026-11-21T00:00",
            ("2026-11-22T02:00", "2026-11-22T03:00"),
            id="Sunday is 7",
        ),
        pytest.param(
            cron("0 2 * * 0", timedelta(hours=1)),
            "2026-11-21T00:00",
            ("2026-11-22T02:00", "2026-11-22T03:00"),
            id="Sunday is 0, too",
        ),
        pytest.param(
            cron("0 2 * * MON-fri", timedelta(hours=1)),
            "2026-11-21T00:00",
            ("2026-11-23T02:00", "2026-11-23T03:00"),
            id="days by their names",
        ),
        pytest.param(
            cron("0 0 13 * 5", timedelta(hours=1)),
            "2026-11-21T00:00",
            ("2026-11-27T00:00", "2026-11-27T01:00"),
            id="a day of the month or of the week, as cron has it",
        ),
        pytest.param(
            cron("@weekly", timedelta(hours=30)),
            "2026-11-23T05:00",
            ("2026-11-22T00:00", "2026-11-23T06:00"),
            id="one in force gives its start",
        ),
        pytest.param(
            cron("*/5 * * * 1", timedelta(minutes=10)),
            "2026-11-21T00:00",
            ("2026-11-23T00:00", "2026-11-24T00:05"),
            id="firings that overlap are one run",
        ),
        pytest.param(
            cron("0 0 29 2 *", timedelta(hours=1)),
            "2026-11-21T00:00",
            ("2028-02-29T00:00", "2028-02-29T01:00"),
            id="29 February comes, if seldom",
        ),
        pytest.param(
            cron("* * * 1-6 *", timedelta(minutes=1)),
            "2026-11-21T00:00",
            ("2027-01-01T00:00", "2027-07-01T00:00"),
            id="half a year of minutes has an end",
        ),
    ],
)
def test_a_rule_becomes_runs(rule: Times, since: str, run: tuple[str, str]) -> None:
    assert first(rule, since) == [run]


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(weekly("mon-sun", "00:00", "24:00", "Europe/Berlin"), id="every day, the whole day"),
        pytest.param(cron("@daily", timedelta(hours=48)), id="longer than until it fires again"),
        pytest.param(cron("* * * * *", timedelta(minutes=1)), id="every minute, for a minute"),
    ],
)
def test_what_never_ends_has_no_end_in_sight(rule: Times) -> None:
    assert list(rule.runs(utc("2026-11-21T00:00"))) == [Run(BEGINNING, FOREVER)]


def test_one_moment_to_another_is_one_run_and_then_none() -> None:
    rule = Once(datetime(2026, 11, 26, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC), UTC)

    assert first(rule, "2026-11-27T00:00", 5) == [("2026-11-26T00:00", "2026-11-30T00:00")]
    assert first(rule, "2026-11-30T00:00", 5) == []


def test_times_without_an_offset_are_meant_in_the_zone() -> None:
    rule = Once(
        datetime.fromisoformat("2026-11-26"),
        datetime.fromisoformat("2026-11-30T06:00"),
        ZoneInfo("Europe/Berlin"),
    )

    assert first(rule, "2026-11-01T00:00") == [("2026-11-25T23:00", "2026-11-30T05:00")]


def test_a_runs_start_is_inside_and_its_end_is_not() -> None:
    run = Run(utc("2026-11-21T00:00"), utc("2026-11-21T01:00"))

    assert run.holds(run.start)
    assert run.holds(run.end - timedelta(seconds=1))
    assert not run.holds(run.end)
    assert not run.holds(run.start - timedelta(seconds=1))
