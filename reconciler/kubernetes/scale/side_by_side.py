"""Writes of many nodes side by side: as many at a time as the API server likes."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

from reconciler.kubernetes.scale.beside import ThreadsBeside
from reconciler.model.errors import Late, NoThread
from reconciler.threads import start

log = logging.getLogger(__name__)

Value = TypeVar("Value")

FIRST = 8
"""Writes at once in the beginning."""

MOST = 16
"""Writes at once at most."""

HANGS = 2.0
"""Seconds for which a pass waits for a write. A webhook of the API server may take 30 seconds for it."""

MOST_LATE = 16
"""Writes of one pass that may be late. After so many, it begins no other, and the next pass goes on."""

MOST_HANGING = 64
"""Writes of all passes that may be without an answer at a time."""

UNANSWERED = "no answer yet to this write; a later pass sees what came of it"
STILL = "no answer yet to the write before this one; a later pass goes on"
NOT_BEGUN = "no answer yet to the writes of many other nodes; a later pass writes this one"


class SideBySide:
    """Does works in threads. A throttled request halves how many at once, and success raises it again.

    `throttled` counts how often the API server has asked for fewer requests. The client of each request heeds
    how long it has to wait (Retry-After).

    A work that has not ended after `HANGS` seconds is late: it goes on in its thread, and the others go on
    without it. A pass that waits for each answer waits for it, too.
    """

    def __init__(
        self,
        throttled: Callable[[], int],
        done: Callable[[], object] = lambda: None,
        beside: ThreadsBeside | None = None,
    ) -> None:
        """Take the counter, and what is called after each work; any thread may call both.

        `beside` knows whether the pass waits for each answer, and learns of late works.
        """
        self._throttled, self._done = throttled, done
        self._beside = beside or ThreadsBeside()
        self._seen = throttled()
        self._most = float(FIRST)
        self._lock = threading.Lock()
        self._hanging: set[str] = set()
        """Works that were late, and have not ended."""
        self._last: set[str] = set()
        """Works that were late the last time: all others come first."""

    def __call__(self, works: Mapping[str, Callable[[], Value]]) -> Mapping[str, Value | Late]:
        """Return the results by name; raises the first error, and then begins no other.

        Late for a work that has not ended in time, for one that was late before and still has not ended, and
        for the rest if too many are late.
        """
        with self._lock:
            hanging = set(self._hanging)
            first = [name for name in works if name not in hanging | self._last]
            last = [name for name in works if name not in hanging and name in self._last]
        results: Mapping[str, Value | Late]
        most_late = min(MOST_LATE, MOST_HANGING - len(hanging))
        if most_late > 0:
            begun = {name: works[name] for name in (*first, *last)}
            run = _Run(begun, self._at_once, self._ended_late, most_late)
            results = run.results(HANGS if self._beside.is_bounded else None, self._is_late)
        else:
            results = {name: Late(NOT_BEGUN) for name in (*first, *last)}
        results = {name: results.get(name, Late(STILL)) for name in works}
        in_time = {name for name, result in results.items() if not isinstance(result, Late)}
        with self._lock:
            self._last -= in_time
        if len(in_time) < len(results):
            self._beside.late = True
        return results

    def _at_once(self) -> float:
        """Return how many works may be done at once, after another one was done."""
        self._done()
        count = self._throttled()
        if count > self._seen:
            self._seen, self._most = count, max(1.0, self._most / 2)
        else:
            # One more after each whole round.
            self._most = min(float(MOST), self._most + 1 / self._most)
        return self._most

    def _is_late(self, name: str) -> None:
        with self._lock:
            self._hanging.add(name)
            self._last.add(name)

    def _ended_late(self, name: str, error: BaseException | None) -> None:
        if error is not None:
            log.warning("node %s: no answer to its write came in time, then it failed: %s", name, error)
        with self._lock:
            self._hanging.discard(name)
        self._beside.came()


class _Run(Generic[Value]):
    """The works of one call, which its threads share. Of these, `most_late` may be late."""

    def __init__(
        self,
        works: Mapping[str, Callable[[], Value]],
        at_once: Callable[[], float],
        ended_late: Callable[[str, BaseException | None], None],
        most_late: int,
    ) -> None:
        self._at_once, self._ended_late, self._most_late = at_once, ended_late, most_late
        self._waiting = deque(works.items())
        self._running: dict[str, float] = {}
        """Since when each work runs that is not late."""
        self._results: dict[str, Value | Late] = {}
        self._error: BaseException | None = None
        self._threads = 0
        """Threads without a late work."""
        self._most = at_once()
        self._changed = threading.Condition()

    def results(self, patience: float | None, is_late: Callable[[str], None]) -> Mapping[str, Value | Late]:
        """Do the works, and return their results; raises the first error. `is_late` gets each late work."""
        with self._changed:
            self._start()
            if not self._threads:
                # No thread can start, so it is done here, without a limit.
                self._threads = 1
                self._changed.release()
                try:
                    self._go_on()
                finally:
                    self._changed.acquire()
            while self._running or not self._is_over():
                now = time.monotonic()
                if patience is not None:
                    for name in [name for name, began in self._running.items() if began + patience <= now]:
                        is_late(name)
                        del self._running[name]
                        self._results[name] = Late(UNANSWERED)
                        self._threads -= 1
                        self._most_late -= 1
                        # Its place is free.
                        self._changed.notify_all()
                    self._start()
                if not self._threads or self._most_late <= 0:
                    self._results |= {name: Late(NOT_BEGUN) for name, _ in self._waiting}
                    self._waiting.clear()
                first = min(self._running.values(), default=now)
                if self._running or not self._is_over():
                    self._changed.wait(first + patience - now if patience is not None else None)
            self._changed.notify_all()
        if self._error is not None:
            raise self._error
        return self._results

    def _start(self) -> None:
        """Start as many threads as may have work at once."""
        # What runs here goes on with the threads that it has.
        with suppress(NoThread):
            while self._threads < min(MOST, len(self._running) + len(self._waiting)):
                start("writer", partial(copy_context().run, self._go_on))
                self._threads += 1

    def _go_on(self) -> None:
        """Do one work after the other, until none is left, one has failed, or one was late."""
        error: BaseException | None
        while (work := self._next()) is not None:
            name, do = work
            try:
                result = do()
            except BaseException as caught:  # noqa: BLE001 - `results` raises it
                error = caught
            else:
                error = None
            with self._changed:
                late = self._running.pop(name, None) is None
                if not late:
                    if error is None:
                        self._results[name] = result
                    else:
                        self._error = self._error or error
                    self._most = self._at_once()
                    self._changed.notify_all()
            if late:
                self._ended_late(name, error)
                return

    def _next(self) -> tuple[str, Callable[[], Value]] | None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._running) < self._most or self._is_over())
            if self._is_over():
                return None
            name, work = self._waiting.popleft()
            self._running[name] = time.monotonic()
            return name, work

    def _is_over(self) -> bool:
        return not self._waiting or self._error is not None
