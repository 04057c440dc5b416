"""The small values of the settings: what is read, what is refused and in which words, and the way back."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.calendar.values import (
    Limit,
    TimeOfDay,
    format_days,
    format_duration,
    format_moment,
    parse_days,
    parse_duration,
    parse_limit,
    parse_moment,
    parse_time,
    parse_time_or_moment,
    parse_zone,
    to_utc,
    with_time_left,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30s", timedelta(seconds=30)),
        ("4h", timedelta(hours=4)),
        ("1d", timedelta(days=1)),
        ("1h30m", timedelta(minutes=90)),
        ("0s", timedelta()),
        ("0", timedelta()),
        (0, timedelta()),
        (timedelta(minutes=3), timedelta(minutes=3)),
    ],
)
def test_durations_are_read(text: object, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(10, "10 has no unit", id="a bare number has no unit"),
        pytest.param("-5m", "negative", id="durations are not negative"),
        pytest.param(timedelta(minutes=-1), "0s or longer", id="nor are those of a program"),
        pytest.param("", "is not a duration", id="nothing is not a duration"),
        pytest.param("30m1h", "is not a duration", id="the larger unit comes first"),
        pytest.param("1.5h", "is not a duration", id="no fractions"),
        pytest.param(True, "is not a duration", id="true is not 1"),
        pytest.param("99999999999999999999d", "ten years", id="what no clock can hold"),
        pytest.param("3651d", "ten years", id="longer than anybody means"),
        pytest.param("١٠m", "is not a duration", id="digits are ASCII"),
    ],
)
def test_what_is_no_duration_is_refused(text: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_duration(text)


@settings(deadline=None)
@given(st.integers(0, 3650 * 86_400))
def test_a_duration_survives_being_written(seconds: int) -> None:
    length = timedelta(seconds=seconds)

    assert parse_duration(format_duration(length)) == length


@pytest.mark.parametrize(
    ("given_days", "days"),
    [
        (["mon"], {0}),
        (["we", "WED", "WeDnEsDaY"], {2}),
        (["Mon-Thu"], {0, 1, 2, 3}),
        pytest.param(["Sun-Fri"], {6, 0, 1, 2, 3, 4}, id="a range runs over the week's end"),
        pytest.param(["Mon-Mon"], {0}, id="a range of one day"),
        pytest.param(["Tues", "Thurs", "Tu-Th"], {1, 2, 3}, id="any length from two letters"),
        pytest.param("mon,tue, fri", {0, 1, 4}, id="one text with commas"),
        pytest.param([0, 7, "4"], {6, 3}, id="digits are cron's, Sunday 0 and 7"),
        pytest.param(["1-5"], {0, 1, 2, 3, 4}, id="a range of digits"),
        pytest.param(["0-7"], set(range(7)), id="0-7 is the whole week, not one Sunday"),
        pytest.param("fri", {4}, id="one day by itself"),
    ],
)
def test_days_are_read(given_days: object, days: set[int]) -> None:
    assert parse_days(given_days) == days


@pytest.mark.parametrize(
    ("given_days", "said"),
    [
        (["fridayyyy"], "'fridayyyy' is not a day"),
        (["m"], "'m' is not a day"),
        ([-8], "is not a day"),
        (["Mon-"], "is not a day"),
        (["Mon-Tue-Wed"], "is not a day"),
        ([True], "true is not a day"),
        ([["mon"]], "a list is not a day"),
        pytest.param([], "has no days", id="a window of no day would never open"),
        pytest.param(",,,", "has no days", id="nor would one of commas"),
    ],
)
def test_what_is_no_day_is_refused(given_days: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_days(given_days)


@settings(deadline=None)
@given(st.sets(st.integers(0, 6), min_size=1, max_size=6))
def test_days_survive_being_written(days: set[int]) -> None:
    assert parse_days(format_days(frozenset(days))) == days


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("22:00", "22:00"),
        ("9am", "09:00"),
        ("11:30pm", "23:30"),
        ("22:00:30", "22:00:30"),
        ("12am", "00:00"),
        ("12pm", "12:00"),
        ("12:30 AM", "00:30"),
        ("24:00", "24:00"),
        pytest.param("00:01am", "00:01", id="kured's 00:01am can mean only one thing"),
    ],
)
def test_times_of_day_are_read(text: str, written: str) -> None:
    assert str(parse_time(text)) == written


@pytest.mark.parametrize(
    "text", ["25:00", "24:01", "22:60", "13pm", "0pm", "00:01pm", "-1:00", "22", 22, "", None, "noon", "22:0"]
)
def test_what_is_no_time_of_day_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"time of day|may be morning or evening"):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        pytest.param("2026-11-26", "2026-11-25T23:00", id="a date is its midnight in the zone"),
        pytest.param("2026-11-26T06:00", "2026-11-26T05:00", id="a date and time in the zone"),
        pytest.param("2026-11-26 06:00:30", "2026-11-26T05:00:30", id="a blank for the T"),
        pytest.param("2026-11-26T06:00:00Z", "2026-11-26T06:00", id="RFC 3339 in UTC"),
        pytest.param("2026-11-26T06:00:00-05:00", "2026-11-26T11:00", id="RFC 3339 with an offset"),
        pytest.param("2026-11-26T06:00:00.5Z", "2026-11-26T06:00", id="fractions are dropped"),
        pytest.param("2026-03-29T02:30", "2026-03-29T01:30", id="a skipped time moves forward"),
        pytest.param("2026-10-25T02:30", "2026-10-25T00:30", id="of a time that comes twice, the first"),
    ],
)
def test_moments_are_read(text: str, utc: str) -> None:
    assert to_utc(parse_moment(text), BERLIN) == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-02-30", "2026-11", "26.11.2026", "tomorrow", 20261126, "2026-11-26T", "2026-W48-4", "0001-01-01",
     "9999-12-31", "2026-11-26T25:00", ""],
)  # fmt: skip
def test_what_is_no_moment_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"moment|not a valid date|not between the years"):
        parse_moment(text)


def test_a_start_is_a_time_of_day_or_a_moment() -> None:
    assert parse_time_or_moment("22:00") == TimeOfDay(22 * 3600)
    assert format_moment(parse_time_or_moment("2026-11-26")) == "2026-11-26"
    assert format_moment(parse_time_or_moment("2026-11-26T06:00")) == "2026-11-26T06:00"


def test_24_00_is_the_next_days_midnight() -> None:
    assert TimeOfDay(86_400).on(date(2026, 12, 31), BERLIN) == datetime(2026, 12, 31, 23, tzinfo=UTC)


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "CET", "Pacific/Auckland", "Australia/Lord_Howe"])
def test_iana_zones_are_read(name: str) -> None:
    assert parse_zone(name).key == name


@pytest.mark.parametrize(
    "name",
    ["Europe", "Europe/Berlinn", "+02:00", "../../etc/passwd", "/etc/localtime", "", 2, "a\0b", "localtime"],
)
def test_what_is_no_zone_is_refused(name: object) -> None:
    with pytest.raises(ValueError, match="time zone"):
        parse_zone(name)


def test_a_misspelt_zone_comes_with_the_one_that_was_meant() -> None:
    with pytest.raises(ValueError, match=r"did you mean Europe/Berlin\?"):
        parse_zone("europe/berlin")


@pytest.mark.parametrize(
    ("given_limit", "total", "allowed"),
    [
        pytest.param("10", 100, 10, id="a number is itself"),
        pytest.param(3, 2, 3, id="also where there are fewer nodes"),
        pytest.param("5%", 10, 1, id="a percentage rounds up"),
        pytest.param("10%", 11, 2, id="one more node, one more place"),
        pytest.param(0, 5, 0, id="0 stops every drain"),
    ],
)
def test_limits_are_read(given_limit: object, total: int, allowed: int) -> None:
    assert parse_limit(given_limit).of(total) == allowed


@pytest.mark.parametrize("text", ["110%", "-1", -1, "1.5%", "%", "ten", True, None, "10 %", 1.5])
def test_what_is_no_limit_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="number of nodes"):
        parse_limit(text)


@settings(deadline=None)
@given(st.integers(0, 100), st.integers(0, 5000))
def test_a_percentage_never_gives_less_than_its_share_nor_a_whole_node_more(share: int, total: int) -> None:
    places = Limit(share, percent=True).of(total)

    assert 0 <= places * 100 - share * total < 100


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("at 2026-11-21T12:14:30Z", "at 2026-11-21T12:14:30Z (in 14m)"),
        (
            "from 2026-11-21T13:00:00+01:00 to 2026-11-22T12:00:00Z",
            "from 2026-11-21T13:00:00+01:00 (now) to ",
        ),
        ("at 2026-11-21T11:58:00Z, late", "at 2026-11-21T11:58:00Z (2m ago), late"),
        ("at 2026-11-23T14:14:00Z", "at 2026-11-23T14:14:00Z (in 2d2h)"),
        ("at 2026-11-21T12:00:10Z", "at 2026-11-21T12:00:10Z (in less than 1m)"),
        ("at 2026-11-99T12:00:10Z", "at 2026-11-99T12:00:10Z"),
        ("no moment", "no moment"),
    ],
)
def test_a_line_says_how_far_away_its_first_moment_is(line: str, said: str) -> None:
    assert with_time_left(line, NOW).startswith(said)
