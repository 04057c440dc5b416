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


def weekly(words: str, zone: str = "Europe/Berlin") -> Weekly:
    """Build a weekly rule from its days, start and end."""
    days, start, end = words.split()
    return Weekly(parse_days(days), parse_time(start), parse_time(end), ZoneInfo(zone))


def cron(schedule: str, hours: float, zone: str = "UTC") -> Cron:
    """Build a cron rule from words."""
    return Cron(schedule, timedelta(hours=hours), ZoneInfo(zone))


def first(times: Times, since: str, count: int = 1) -> list[tuple[str, str]]:
    """Return the first runs that end after a moment, written in UTC without the zone."""
    runs = islice(times.runs(utc(since)), count)
    return [(f"{run.start:%Y-%m-%dT%H:%M}", f"{run.end:%Y-%m-%dT%H:%M}") for run in runs]


RUNS = {
    "a night in spring": (weekly("sat 22:00 05:00"), "2026-03-28T20", "03-28T21:00 03-29T03:00"),
    "a night in autumn": (weekly("sat 22:00 05:00"), "2026-10-24T12", "10-24T20:00 10-25T04:00"),
    "a start in the gap": (weekly("sun 02:30 05:00"), "2026-03-29", "03-29T01:30 03-29T03:00"),
    "an end in the gap": (weekly("sun 01:00 02:30"), "2026-03-29", "03-29T00:00 03-29T01:30"),
    "a window that is skipped": (weekly("sun 02:30 03:00"), "2026-03-29", "04-05T00:30 04-05T01:00"),
    "the first of two starts": (weekly("sun 02:30 03:30"), "2026-10-24T12", "10-25T00:30 10-25T02:30"),
    "the first of two ends": (weekly("sun 01:00 02:30"), "2026-10-24T12", "10-24T23:00 10-25T00:30"),
    "half an hour is skipped": (
        weekly("sun 01:45 02:15", "Australia/Lord_Howe"),
        "2026-10-03T12",
        "10-03T15:15 10-03T15:45",
    ),
    "a Sunday of 25 hours": (weekly("sun 00:00 24:00"), "2026-10-24T12", "10-24T22:00 10-25T23:00"),
    "its real start": (weekly("fri 22:00 05:00", "UTC"), "2026-11-28T03", "11-27T22:00 11-28T05:00"),
    "whole days are one run": (
        weekly("fri-sun 00:00 24:00", "UTC"),
        "2026-11-29T12",
        "11-27T00:00 11-30T00:00",
    ),
    "cron in the gap": (cron("30 2 * * *", 1, "Europe/Berlin"), "2026-03-29", "03-29T01:00 03-29T02:00"),
    "cron twice fires once": (
        cron("30 2 * * *", 3, "Europe/Berlin"),
        "2026-10-24T12",
        "10-25T00:30 10-25T03:30",
    ),
    "the first Saturday of a month": (cron("0 2 * * 6#1", 4), "2026-11-21", "12-05T02:00 12-05T06:00"),
    "Sunday is 7": (cron("0 2 * * 7", 1), "2026-11-21", "11-22T02:00 11-22T03:00"),
    "one in force gives its start": (cron("@weekly", 30), "2026-11-23T05", "11-22T00:00 11-23T06:00"),
    "firings that overlap are one run": (cron("*/5 * * * 1", 1 / 6), "2026-11-21", "11-23T00:00 11-24T00:05"),
    "half a year of minutes": (
        cron("* * * 1-6 *", 1 / 60),
        "2026-11-21",
        "2027-01-01T00:00 2027-07-01T00:00",
    ),
}
"""By case: a rule, a moment, and the first run that ends after it, in UTC without the moment's year."""


@pytest.mark.parametrize(("rule", "since", "run"), RUNS.values(), ids=RUNS)
def test_a_rule_becomes_runs(rule: Times, since: str, run: str) -> None:
    assert " ".join(first(rule, since)[0]).replace(since[:5], "") == run


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(weekly("mon-sun 00:00 24:00"), id="every day, the whole day"),
        pytest.param(cron("@daily", 48), id="longer than until it fires again"),
        pytest.param(cron("* * * * *", 1 / 60), id="every minute, for a minute"),
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
