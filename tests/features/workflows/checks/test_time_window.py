"""timeWindow: weekly, past midnight, with seconds, time zones and excluded dates."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, at, config, given

WEEK = ["monday", "tue", "Wed", "thu", "fri", "sat", "sunday"]


def is_open(moment: str, **keys: object) -> bool:
    """Whether the window is open."""
    scene = given(now=datetime.fromisoformat(moment))
    return ask("timeWindow", scene, **keys).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("moment", "opened"),
    [
        ("2020-06-29T10:30:00Z", False),
        ("2020-06-29T10:30:00.000001Z", True),
        ("2020-06-29T15:19:59Z", True),
        ("2020-06-29T15:20:00Z", False),
        ("2020-06-25T11:00:00Z", False),
    ],
)
def test_it_is_open_between_its_times_on_its_days(moment: str, opened: bool) -> None:
    assert is_open(moment, start="10:30", end="15:20", weekdays=["mon", "tue"]) is opened


@pytest.mark.parametrize(
    ("moment", "opened"),
    [
        ("2020-06-29T21:59:00Z", False),
        ("2020-06-29T22:00:01Z", True),
        ("2020-06-30T00:00:00Z", True),
        ("2020-06-30T04:59:00Z", True),
        ("2020-06-30T05:00:00Z", False),
        ("2020-06-29T04:00:00Z", False),
    ],
)
def test_a_window_past_midnight_belongs_to_the_day_on_which_it_starts(moment: str, opened: bool) -> None:
    assert is_open(moment, start="22:00", end="05:00", weekdays=["mon"]) is opened


def test_times_may_have_seconds() -> None:
    window = {"start": "10:30:15", "end": "10:30:45", "weekdays": "mon"}

    assert not is_open("2020-06-29T10:30:15Z", **window)
    assert is_open("2020-06-29T10:30:44Z", **window)
    assert not is_open("2020-06-29T10:30:45Z", **window)


def test_days_that_touch_are_one_window() -> None:
    always = {"start": "00:00", "end": "24:00", "weekdays": WEEK}

    assert is_open("2020-06-29T00:00:00Z", **always)
    assert ask("timeWindow", given(), **always).until is None


def test_days_and_times_are_of_its_time_zone() -> None:
    window = {"start": "10:00", "end": "11:00", "weekdays": "mon", "timeZone": "Europe/Berlin"}

    assert is_open("2020-06-29T08:30:00Z", **window)
    assert is_open("2020-12-28T09:30:00Z", **window)
    assert not is_open("2020-12-28T08:30:00Z", **window)


@pytest.mark.parametrize(
    ("moment", "opened"),
    [
        pytest.param("2026-12-23T23:00:00Z", True, id="the evening before"),
        pytest.param("2026-12-24T02:00:00Z", False, id="it ends at midnight"),
        pytest.param("2026-12-24T23:00:00Z", False, id="the day"),
        pytest.param("2026-12-25T02:00:00Z", False, id="the night that starts on the day"),
        pytest.param("2026-12-25T23:00:00Z", True, id="the evening after"),
        pytest.param("2027-12-24T23:00:00Z", False, id="the same date of another year"),
        pytest.param("2026-02-03T23:00:00Z", False, id="one year"),
        pytest.param("2027-02-03T23:00:00Z", True, id="not the next year"),
    ],
)
def test_an_excluded_date_has_no_window(moment: str, opened: bool) -> None:
    window = {"start": "22:00", "end": "05:00", "weekdays": WEEK, "exclude": ["Dec 24", "2026-02-03"]}

    assert is_open(moment, **window) is opened


@pytest.mark.parametrize("moment", ["2020-06-25T11:00:00Z", "2020-06-29T12:00:00Z", "2020-06-29T10:30:00Z"])
def test_the_answer_changes_when_it_says(moment: str) -> None:
    scene = given(now=datetime.fromisoformat(moment))
    window = {"start": "10:30", "end": "15:20", "weekdays": ["mon"]}

    answer = ask("timeWindow", scene, **window)

    assert answer.until is not None
    before = answer.until - timedelta(microseconds=1)
    assert ask("timeWindow", at(scene, before), **window).verdict is answer.verdict
    assert ask("timeWindow", at(scene, answer.until), **window).verdict is not answer.verdict


def test_a_window_of_no_length_never_opens() -> None:
    answer = ask("timeWindow", given(), start="10:00", end="10:00", weekdays=WEEK)

    assert answer.verdict is Verdict.FAILED
    assert answer.reason == "the window never opens within two years"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"start": "10:00", "end": "11:00"}, "weekdays"),
        ({"start": "10:00", "end": "11:00", "weekdays": []}, "has no days"),
        ({"start": "25:00", "end": "11:00", "weekdays": "mon"}, "not a time of day"),
        ({"start": "10:00", "end": "11:00", "weekdays": "mon", "exclude": ["Feb 30"]}, "not a date"),
        ({"start": "10:00", "end": "11:00", "weekdays": "mon", "exclude": ["24 Dec"]}, "not a date"),
    ],
)
def test_what_cannot_be_a_window_is_a_mistake(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        config("timeWindow", **keys)
