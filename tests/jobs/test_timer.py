"""The timer of `serve`: when it rings, also while somebody sets the clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from queue import Queue

import pytest
from apscheduler.job import Job
from apscheduler.schedulers import base

from jobs.runtime.timer import PassTimer
from tests.support.controlplane.processes import wait_for

HOUR = 3600.0


class Wall(datetime):
    """The wall clock as APScheduler reads it, which the test sets."""

    ahead = timedelta()
    reads = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        cls.reads += 1
        return datetime.now(UTC) + cls.ahead


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Wall]]:
    monkeypatch.setattr(base, "datetime", Wall)
    yield Wall
    Wall.ahead = timedelta()


def test_it_rings_at_once_and_then_at_each_moment_that_it_is_asked_for() -> None:
    rings: Queue[None] = Queue()
    with PassTimer(lambda: rings.put(None)) as timer:
        for seconds in (0.01, 0.0, -5.0):
            rings.get(timeout=30)
            timer.ring_in(seconds)
        rings.get(timeout=30)


def test_a_clock_that_is_set_back_delays_no_ring(wall: type[Wall]) -> None:
    rings: Queue[None] = Queue()
    with PassTimer(lambda: rings.put(None)) as timer:
        for hours in (1, 2, 50):
            rings.get(timeout=30)
            timer.ring_in(0.1)
            wall.ahead = -timedelta(hours=hours)
        rings.get(timeout=30)


def test_a_clock_that_is_set_back_while_another_moment_is_asked_for_delays_no_ring(
    wall: type[Wall], monkeypatch: pytest.MonkeyPatch
) -> None:
    rings: Queue[None] = Queue()
    modify = Job.modify

    def interrupted(job: Job, **changes: object) -> None:
        monkeypatch.setattr(Job, "modify", modify)
        wall.ahead = -timedelta(hours=1)
        # The timer rings for the moment that was asked for before, and sees the clock.
        rings.get(timeout=30)
        modify(job, **changes)

    with PassTimer(lambda: rings.put(None)) as timer:
        rings.get(timeout=30)
        timer.ring_in(0.1)
        monkeypatch.setattr(Job, "modify", interrupted)
        timer.ring_in(0.0)
        rings.get(timeout=30)


def test_a_clock_that_is_set_forward_brings_no_ring(wall: type[Wall]) -> None:
    rings: Queue[None] = Queue()
    with PassTimer(lambda: rings.put(None)) as timer:
        rings.get(timeout=30)
        wall.ahead = timedelta(hours=2)
        before = wall.reads
        # The timer looks whether anything is due.
        timer.ring_in(HOUR / 2)
        wait_for("a look", lambda: wall.reads > before)
        timer.ring_in(0.0)
        rings.get(timeout=30)
    assert rings.empty()
