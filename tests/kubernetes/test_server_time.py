"""The API server's time, from the dates of its answers and a clock that the test moves."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes.server_time import AGREED, ServerTime

NOON = datetime(2026, 5, 11, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Scene:
    """A server whose clock is at noon when ours is at 1000 s, and a local clock that is an hour ahead."""

    def __init__(self) -> None:
        self.clock = 1000.0
        self.ahead = HOUR
        self.time = ServerTime(lambda: self.clock, self.local)

    def local(self) -> float:
        return (self.server + self.ahead).timestamp()

    @property
    def server(self) -> datetime:
        return NOON + timedelta(seconds=self.clock - 1000)

    def answer(self, *, late: float = 0.0, off: timedelta = timedelta()) -> None:
        """An answer that takes so many seconds; the server that gives it may be off."""
        sent = self.clock
        date = format_datetime((self.server + off).replace(microsecond=0), usegmt=True)
        self.clock += late
        self.time.note(date, sent, self.clock)

    @property
    def error(self) -> float:
        return (self.time.now() - self.server).total_seconds()


def test_before_the_first_answer_the_local_clock_counts_and_then_no_more() -> None:
    scene = Scene()
    assert (scene.error, scene.time.known, scene.time.disagreement()) == (3600.0, False, None)
    scene.answer()
    assert abs(scene.error) <= 1
    scene.ahead = -24 * HOUR
    scene.clock += 600
    assert abs(scene.error) <= 1
    assert scene.time.disagreement() is None


@given(st.lists(st.tuples(st.floats(0, 8), st.floats(0, 100)), min_size=1, max_size=30))
def test_it_is_exact_to_the_lateness_of_answers_and_never_goes_back(
    answers: list[tuple[float, float]],
) -> None:
    scene = Scene()
    best, latest = 9.0, NOON - HOUR
    for late, pause in answers:
        scene.answer(late=late)
        best = min(best, late + 1)
        now = scene.time.now()
        assert abs((now - scene.server).total_seconds()) <= 9
        assert now >= latest
        latest = now
        scene.clock += pause
    # What earlier answers have told is not forgotten because of one that comes late.
    scene.clock += 10
    assert abs(scene.error) <= best
    assert scene.time.disagreement() is None


@pytest.mark.parametrize("off", [HOUR, -HOUR, timedelta(minutes=4)])
def test_of_two_servers_that_disagree_either_may_be_right(off: timedelta) -> None:
    scene = Scene()
    for _ in range(200):
        scene.answer()
        scene.answer(off=off)
        scene.clock += 2
        assert abs(scene.error) <= 2
        found = scene.time.disagreement()
        assert found is not None
        assert found.counts
        assert abs(found.away - off) <= timedelta(seconds=2)
        assert found.spread == abs(found.away)
        assert found.behind == max(-found.away, timedelta())
    scene.answer()
    scene.clock += AGREED
    assert scene.time.disagreement() is None


@pytest.mark.parametrize("first", [0, 1, 2])
def test_one_server_of_three_that_is_wrong_harms_nobody_and_is_said(first: int) -> None:
    """Whichever answers first: within a minute most of them decide."""
    scene = Scene()
    for number in range(first, 200):
        scene.answer(off=HOUR if number % 3 == 0 else timedelta())
        scene.clock += 2
    found = scene.time.disagreement()

    assert abs(scene.error) <= 2
    assert found is not None
    assert (found.spread, found.behind) == (timedelta(), timedelta())
    assert abs(found.away - HOUR) <= timedelta(seconds=2)
    assert found.words(NOON) == (
        f"the clocks of the API servers disagree by {found.away.total_seconds():.0f}s: {found.some} of "
        f"{found.answers} answers of the last minute say "
        f"{NOON + found.away:%Y-%m-%dT%H:%M:%SZ}, the others 2026-05-11T12:00:00Z. "
        "What most of them say counts"
    )


def test_of_a_few_answers_each_may_be_right() -> None:
    scene = Scene()
    scene.answer()
    scene.answer()
    scene.answer()
    scene.answer(off=-HOUR)
    found = scene.time.disagreement()

    assert found is not None
    assert found.counts


def test_a_clock_of_the_server_that_was_corrected_counts_after_a_minute() -> None:
    scene = Scene()
    scene.answer()
    for _ in range(int(AGREED / 5) + 2):
        assert abs(scene.error) <= 2 or scene.clock >= 1000 + AGREED
        scene.answer(off=-HOUR)
        scene.clock += 5
    assert abs(scene.error + 3600) <= 2
    scene.clock += AGREED
    assert scene.time.disagreement() is None


@pytest.mark.parametrize("date", [None, "", "yesterday", "Mon, 11 May 99999 12:00:00 GMT", "0", "x" * 10**5])
def test_what_is_no_date_is_left_out(date: str | None) -> None:
    scene = Scene()
    scene.time.note(date, 1.0, 2.0)

    assert not scene.time.known


@pytest.mark.heavy
def test_the_plugin_of_a_mac_has_a_clock() -> None:
    without = "import time; del time.CLOCK_BOOTTIME; "
    program = f"{without}from jobs.runtime.clock import SystemClock; SystemClock().now()"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
