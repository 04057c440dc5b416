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
    assert (scene.error, scene.time.known, scene.time.doubt()) == (3600.0, False, None)
    scene.answer()
    assert abs(scene.error) <= 1
    scene.ahead = -24 * HOUR
    scene.clock += 600
    assert abs(scene.error) <= 1
    assert scene.time.doubt() == timedelta()


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
    assert scene.time.doubt() == timedelta()


def test_a_server_that_is_an_hour_off_is_a_reason_for_doubt_and_changes_no_time() -> None:
    scene = Scene()
    for _ in range(200):
        scene.answer()
        scene.answer(off=HOUR)
        scene.clock += 2
        assert abs(scene.error) <= 2
    doubt = scene.time.doubt()
    assert doubt is not None
    assert abs(doubt + HOUR) <= timedelta(seconds=3)
    scene.answer()
    scene.clock += AGREED
    assert scene.time.doubt() == timedelta()


def test_a_clock_of_the_server_that_was_corrected_counts_after_a_minute() -> None:
    scene = Scene()
    scene.answer()
    for _ in range(int(AGREED / 5) + 2):
        before = scene.time.doubt()
        scene.answer(off=-HOUR)
        scene.clock += 5
    assert before == timedelta(0) or abs((before or HOUR) - HOUR) <= timedelta(seconds=2)
    assert abs(scene.error + 3600) <= 2
    assert scene.time.doubt() == timedelta()


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
