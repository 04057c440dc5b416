"""What comes from outside has limits, and beyond them it is unreadable or cut, never an exception later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from reconciler.model import limits
from reconciler.model.moments import from_text, shifted
from reconciler.model.node import Condition


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+14:00",
        "1999-12-31T23:59:59Z",
        "2101-01-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "2026-11-21T12:00:00." + "0" * 5000 + "Z",
        "1" * 5000,
        "\ud800",
        "",
    ],
)
def test_a_moment_outside_of_the_limits_can_not_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"moment|time|far|characters") as refused:
        from_text(text)
    assert len(str(refused.value)) < 200


def test_a_moment_inside_the_limits_is_read_in_any_zone() -> None:
    assert from_text("2000-01-01T01:00:00+01:00") == limits.EARLIEST
    assert from_text("2100-12-31T23:59:59Z") == limits.LATEST


@pytest.mark.parametrize("seconds", [-(2**63), -62135596800, -1, 1, 253402300800, 2**63 - 1])
def test_seconds_that_are_no_moment_of_maintenance_are_unreadable(seconds: int) -> None:
    assert limits.unix_moment(seconds) == limits.UNREADABLE


def test_seconds_of_today_are_a_moment() -> None:
    assert limits.unix_moment(1795262400) == datetime.fromtimestamp(1795262400, UTC)


@pytest.mark.parametrize(
    "moment",
    [
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 1, 1, tzinfo=UTC),
        datetime(1969, 1, 1, tzinfo=UTC),
    ],
)
def test_a_condition_marks_a_time_that_can_not_be_meant(moment: datetime) -> None:
    found = Condition("Ready", "False", heartbeat=moment, transition=moment)
    assert (found.heartbeat, found.transition) == (None, None)
    assert found.unreadable == ("heartbeat", "transition")


def test_a_condition_without_times_has_no_unreadable_ones() -> None:
    assert Condition("Ready", "True").unreadable == ()


@pytest.mark.parametrize("seconds", [-1, 10**15, float("inf"), float("nan"), 367 * 86400])
def test_a_duration_has_a_year_at_most(seconds: float) -> None:
    assert limits.duration(seconds) is None


def test_a_number_of_many_digits_is_refused_and_shown_short() -> None:
    with pytest.raises(ValueError, match="5000 digits"):
        limits.number("9" * 5000)
    assert len(limits.excerpt(10**4999)) < 100


@pytest.mark.parametrize("value", [True, -1, 10**12, 1.0, "1", None, float("inf")])
def test_a_count_is_a_whole_number_up_to_a_million(value: object) -> None:
    with pytest.raises(ValueError, match="not a count"):
        limits.count(value)


def test_halves_of_surrogate_pairs_are_replaced_and_pairs_are_joined() -> None:
    assert limits.loads('{"\\ud800": ["a\\udfff", "\\ud83d\\ude00"]}') == {"\ufffd": ["a\ufffd", "😀"]}
    assert limits.text("a\ud800").encode("utf-8")


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("[" * 30_000, "nested too deep"),
        ("{", "Expecting"),
        ('"' + "x" * limits.ANNOTATION + '"', "longer than 32768 characters"),
    ],
)
def test_json_that_is_too_deep_too_long_or_broken_is_one_error(text: str, because: str) -> None:
    with pytest.raises(ValueError, match=because):
        limits.loads(text)


def test_a_giant_number_in_json_is_no_error() -> None:
    assert limits.loads(f'{{"n": {"9" * 5000}}}') == {"n": float("inf")}


def test_a_text_is_cut_and_says_so() -> None:
    assert limits.text("x" * 5000) == "x" * (limits.TEXT - 1) + "…"


NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "by", "found"),
    [
        pytest.param(NOON, timedelta(hours=-1), NOON - timedelta(hours=1), id="in the calendar"),
        pytest.param(LAST, timedelta(microseconds=1), LAST, id="after its end"),
        pytest.param(NOON, timedelta.max, LAST, id="far after its end"),
        pytest.param(FIRST, -timedelta(microseconds=1), FIRST, id="before its begin"),
        pytest.param(NOON, timedelta.min, FIRST, id="far before its begin"),
    ],
)
def test_a_time_that_is_moved_stays_in_the_calendar(moment: datetime, by: timedelta, found: datetime) -> None:
    assert shifted(moment, by) == found
