"""Runs passes in a thread of its own: on a schedule, and early when something asks for one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from apscheduler.schedulers.background import BackgroundScheduler

from jobs.runtime.pacing import APART, Cause, Pacer
from jobs.runtime.supervised import Ending, Trouble, can_be_repeated, pause_after
from reconciler.model.drains import DrainProgress, Phase


class Yields:
    """What was seen of the drains so far. A drain that is blocked tries again and again; it counts once."""

    def __init__(self) -> None:
        """Start with no drain seen."""
        self._yielded: set[str] = set()

    def see(self, progress: DrainProgress) -> bool:
        """Return whether the drain gives a slot away for the first time since it last made progress."""
        node = progress.node
        if progress.phase is not Phase.RUNNING or progress.blocked_since is None:
            self._yielded.discard(node)
            return False
        if progress.slot or progress.waits_for_slot or node in self._yielded:
            return False
        self._yielded.add(node)
        return True


Failed = Callable[[Exception, int, float], None]

_LATEST = 1.5
"""How many intervals may pass without a pass. The scheduler goes by the wall clock, which can be set back."""


class PassLoop:
    """The loop. An error of a pass never ends it, except for one that a repetition can't help, such as
    MemoryError: that one ends the process.
    """

    def __init__(
        self,
        run: Callable[[], float | None],
        every: float,
        failed: Failed,
        ending: Ending,
        pause: Callable[[int], float] = pause_after,
    ) -> None:
        """Take the function that runs one pass, and `every`, the longest seconds between two passes.

        `run` returns in how many seconds it wants to run again, None for the schedule. `failed` is given each
        unexpected error, the number of failures in a row, and the seconds until the next pass.
        """
        self._run, self._every, self._failed = run, every, failed
        self._ending, self._pause = ending, pause
        self._changed = threading.Condition()
        self._pacer = Pacer()
        self._next = time.monotonic()
        self._leaving = self._scheduled = False
        self._requeue: float | None = None
        self._scheduler = BackgroundScheduler(timezone="UTC")
        # It warns of every run that comes while another one is under way.
        logging.getLogger("apscheduler").setLevel(logging.ERROR)
        self._scheduler.add_job(
            self._on_schedule,
            "interval",
            seconds=every,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
        )
        self._trouble: Trouble | None = None
        self._last_end = time.monotonic()
        self._last_good: float | None = None
        self._thread = threading.Thread(target=self._loop, name="passes", daemon=True)

    def __enter__(self) -> PassLoop:
        """Begin, with the first pass at once."""
        self._thread.start()
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the running pass, and run no other."""
        self._scheduler.shutdown(wait=False)
        with self._changed:
            self._leaving = True
            self._changed.notify_all()
        self._thread.join()

    def wake(self, cause: Cause) -> None:
        """Run a pass soon; see Pacer. May be called from any thread."""
        with self._changed:
            before = self._pacer.due()
            self._pacer.note(cause, time.monotonic())
            if self._pacer.due() != before:
                self._changed.notify_all()

    def at_least_every(self, seconds: float | None) -> None:
        """Run a pass at least so often from the next pass on; None leaves it to the schedule.

        If a pass takes long, half of the time is left to other work.
        """
        self._requeue = seconds

    def _on_schedule(self) -> None:
        with self._changed:
            self._scheduled = True
            self._changed.notify_all()

    def good(self) -> None:
        """Note that the running pass does what it should."""
        self._last_good = time.monotonic()
        self._trouble = None

    def stuck(self) -> str:
        """Return why the process should be restarted: no pass has ended for a long time. Else empty."""
        if self._ending.error is not None:
            return f"the process ends: {type(self._ending.error).__name__}"
        silence = time.monotonic() - self._last_end
        return f"no pass has ended for {silence:.0f} s" if silence > self._every * 3 + 120 else ""

    def unready(self) -> str:
        """Return why the passes do not work, or an empty text."""
        if self._trouble is not None:
            return f"the pass {self._trouble}"
        if self._last_good is None:
            return "no pass has succeeded yet"
        silence = time.monotonic() - self._last_good
        return f"the last successful pass was {silence:.0f} s ago" if silence > self._every * 3 else ""

    def _loop(self) -> None:
        try:
            while self._wait():
                self._once()
        except BaseException as error:  # noqa: BLE001 - the main thread raises it again
            self._ending.fatal(error)

    def _wait(self) -> bool:
        """Wait until the next pass is due, and begin it; return False when the loop is left."""
        with self._changed:
            while not self._leaving:
                now = time.monotonic()
                due = self._pacer.due()
                start = self._next if due is None else min(self._next, due)
                if start <= now or self._scheduled:
                    self._scheduled = False
                    self._pacer.begin(now)
                    return True
                self._changed.wait(start - now)
            return False

    def _once(self) -> None:
        began = time.monotonic()
        again: float | None = None
        try:
            again = self._run()
        except Exception as error:
            if not can_be_repeated(error):
                raise
            self._trouble = Trouble.after(self._trouble, error)
            again = min(self._pause(self._trouble.failures), self._every)
            self._failed(error, self._trouble.failures, again)
        now = time.monotonic()
        with self._changed:
            self._last_end = now
            self._pacer.end(now)
            self._next = began + self._every * _LATEST
            if again is not None:
                # What a node says may move the plan's next moment. It costs one pass a second at most.
                self._next = min(self._next, max(now + again, began + min(APART, self._every)))
            if self._requeue is not None:
                self._next = min(self._next, began + max(self._requeue, 2 * (now - began)))
