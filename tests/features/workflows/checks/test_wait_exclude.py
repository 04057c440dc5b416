"""waitExclude: the time since the last transition, without some weekdays."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given as each
from hypothesis import strategies as st

from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, at, given
from tests.support.builders import NOW

DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@pytest.mark.parametrize(
    ("since", "now", "passed"),
    [
        ("2022-03-06T12:00Z", "2022-03-08T17:00Z", False),
        ("2022-03-06T12:00Z", "2022-03-08T18:00Z", False),
        ("2022-03-06T12:00Z", "2022-03-08T18:00:01Z", True),
        ("2022-03-07T12:00Z", "2022-03-10T05:00Z", False),
        ("2022-03-07T12:00Z", "2022-03-10T06:10Z", True),
        ("2022-03-05T22:00Z", "2022-03-07T17:00Z", False),
        # maintenance-controller says no: inside of an excluded day it subtracts that day twice.
        ("2022-03-05T12:00Z", "2022-03-07T17:00Z", True),
    ],
)
def test_excluded_days_do_not_count(since: str, now: str, passed: bool) -> None:
    scene = given(since=datetime.fromisoformat(since), now=datetime.fromisoformat(now))

    answer = ask("waitExclude", scene, duration="30h", exclude=["mon", "wed"])

    assert (answer.verdict is Verdict.PASSED) is passed


def test_without_excluded_days_it_is_wait() -> None:
    scene = given(since=NOW - timedelta(minutes=90))

    assert ask("waitExclude", scene, duration="1h", exclude=[]).verdict is Verdict.PASSED
    assert ask("waitExclude", scene, duration="90m", exclude=[]).verdict is Verdict.FAILED


def test_no_time_passes_if_every_day_is_excluded() -> None:
    answer = ask("waitExclude", given(), duration="1s", exclude=DAYS)

    assert answer.verdict is Verdict.FAILED
    assert answer.until is None


def test_a_wait_that_ends_with_a_day_goes_on_after_the_excluded_days() -> None:
    # Sunday 12:00 and 12 hours: the wait is over at midnight, and Monday does not count.
    since = datetime.fromisoformat("2022-03-06T12:00Z")
    scene = given(since=since, now=since)

    answer = ask("waitExclude", scene, duration="12h", exclude=["mon"])

    assert answer.until == datetime.fromisoformat("2022-03-08T00:00:00.000001Z")


@each(
    st.integers(0, 14 * 24 * 60),
    st.integers(0, 72 * 60),
    st.lists(st.sampled_from(DAYS), max_size=6, unique=True),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
)
def test_the_answer_changes_once_and_when_it_says(
    begins: int, length: int, excluded: list[str], zone: str
) -> None:
    since = NOW + timedelta(minutes=begins)
    scene = given(since=since, now=since)
    keys = {"duration": f"{length}m", "exclude": excluded, "timeZone": zone}

    answer = ask("waitExclude", scene, **keys)

    assert answer.until is not None
    just_before = at(scene, answer.until - timedelta(microseconds=1))
    assert ask("waitExclude", just_before, **keys).verdict is Verdict.FAILED
    for later in (timedelta(), timedelta(hours=7), timedelta(days=1), timedelta(days=3)):
        assert ask("waitExclude", at(scene, answer.until + later), **keys).verdict is Verdict.PASSED
