"""The one timer of `serve`: APScheduler says when the next pass begins, by a clock that nobody sets."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Self

from apscheduler.executors.debug import DebugExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler

SET = 1.0
"""Seconds by which the wall clock differs from one look to the next at least if somebody has set it."""

_NEVER = 5000
"""Weeks, about a century."""


class _SteadyJobs(MemoryJobStore):  # type: ignore[misc]  # APScheduler ships no types
    """Jobs whose moments move with the wall clock when somebody sets it.

    APScheduler waits by a clock that nobody sets, and then asks the wall clock whether a job is due. After an
    hour back, it would wait for that hour once more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ahead = time.time() - time.monotonic()
        """How far the wall clock was ahead of the steady one at the last look, in seconds."""

    def moment(self, seconds: float) -> datetime:
        """Return the moment in so many seconds (UTC), by the wall clock as it was at the last look."""
        return datetime.fromtimestamp(time.monotonic() + seconds + self.ahead, UTC)

    def get_due_jobs(self, now: datetime) -> list[object]:
        """Move each job by what the wall clock was set since the last look, then return those due `now`."""
        moved = now.timestamp() - time.monotonic() - self.ahead
        self.ahead += moved
        for job in self.get_all_jobs():
            job.next_run_time += timedelta(seconds=moved)
            self.update_job(job)
        due: list[object] = super().get_due_jobs(now)
        return due


class PassTimer:
    """Rings at once, and then at each moment that it is asked for. A ring must not block."""

    def __init__(self, ring: Callable[[], object]) -> None:
        """Call `ring` in a thread of the timer."""
        # It warns of every ring that is late.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._jobs = _SteadyJobs()
        self._scheduler = BackgroundScheduler(
            timezone="UTC",
            jobstores={"default": self._jobs},
            # A ring is short, so the timer's own thread calls it.
            executors={"default": DebugExecutor()},
        )
        self._job = self._scheduler.add_job(
            ring,
            # A job without a next moment is removed, so this one has one that never comes.
            "interval",
            weeks=_NEVER,
            next_run_time=self._jobs.moment(0.0),
            coalesce=True,
            misfire_grace_time=None,
        )

    def __enter__(self) -> Self:
        """Begin, with the first ring at once. RuntimeError if its thread can't start now."""
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ring no more."""
        self._scheduler.shutdown(wait=False)

    def ring_in(self, seconds: float) -> None:
        """Ring in so many seconds instead of at the moment that was due next."""
        ahead = math.inf
        # The timer's thread may see a clock that was set meanwhile: it moves the jobs, but not this moment.
        while abs(ahead - self._jobs.ahead) > SET:
            ahead = self._jobs.ahead
            self._job.modify(next_run_time=self._jobs.moment(max(seconds, 0.0)))
