"""Whether passes still end, by a clock that the test moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from jobs.runtime.watchdog import LONGEST, Watchdog


@pytest.fixture
def now() -> SimpleNamespace:
    return SimpleNamespace(seconds=100.0)


@pytest.fixture
def watchdog(now: SimpleNamespace) -> Watchdog:
    return Watchdog(30, lambda: now.seconds)


def test_a_pass_that_does_not_end_stands_still(now: SimpleNamespace, watchdog: Watchdog) -> None:
    watchdog.begins()
    now.seconds += LONGEST
    assert watchdog.stands_still() == ""
    now.seconds += 1
    assert watchdog.stands_still() == "no pass has ended for 61 s"
    watchdog.ends(30)
    assert watchdog.stands_still() == ""


def test_a_pass_that_does_not_begin_stands_still(now: SimpleNamespace, watchdog: Watchdog) -> None:
    watchdog.begins()
    watchdog.ends(3600)
    now.seconds += 3600 + LONGEST
    assert watchdog.stands_still() == ""
    now.seconds += 1
    assert watchdog.stands_still()


def test_a_pass_that_writes_does_not_stand_still(now: SimpleNamespace, watchdog: Watchdog) -> None:
    watchdog.begins()
    for _ in range(500):
        now.seconds += 1
        watchdog.wrote()
        assert watchdog.stands_still() == ""
    now.seconds += LONGEST + 1
    assert watchdog.stands_still()


def test_a_write_between_two_passes_delays_nothing(now: SimpleNamespace, watchdog: Watchdog) -> None:
    watchdog.ends(30)
    watchdog.wrote()
    now.seconds += 30 + LONGEST + 1
    assert watchdog.stands_still()


def test_a_pass_may_take_twice_as_long_as_the_one_before(now: SimpleNamespace, watchdog: Watchdog) -> None:
    watchdog.begins()
    now.seconds += 80
    watchdog.acted()
    watchdog.ends()
    watchdog.begins()
    now.seconds += 160
    assert watchdog.stands_still() == ""
    now.seconds += 1
    assert watchdog.stands_still()


def test_no_pass_may_take_longer_than_the_process_may_live_without_one(
    now: SimpleNamespace, watchdog: Watchdog
) -> None:
    watchdog.begins()
    now.seconds += 1000
    watchdog.acted()
    watchdog.ends()
    watchdog.begins()
    now.seconds += 211
    assert watchdog.stands_still()


def test_passes_that_only_fail_stand_still(now: SimpleNamespace, watchdog: Watchdog) -> None:
    watchdog.begins()
    now.seconds += LONGEST
    watchdog.begins()
    now.seconds += 1
    assert watchdog.stands_still()
