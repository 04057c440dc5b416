"""Whether passes end, and whether they work. The lock is renewed only while they end."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from jobs.runtime.supervised import Trouble

LONGEST = 60.0
"""Seconds in which a pass ends, or writes something. A usual one takes less than a second."""


class Watchdog:
    """Counts how long passes stand still, and how they end; safe for threads.

    A pass stands still if it neither ends nor writes anything for `LONGEST` seconds. If the last pass that
    reached its writes took long, the limit is twice that time: with a slow API server, no pass would succeed
    otherwise. A pass that is due and does not begin stands still as well. So does one that ends with an error
    of the program, because another process may not have that error.
    """

    def __init__(self, every: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a pass that is due now. `every` is the longest time in seconds between two passes."""
        self.every, self._clock = every, clock
        self._state = threading.Lock()
        self._twice = 0.0
        self._since = self._began = self._ended = clock()
        self._worked: float | None = None
        self._trouble: Trouble | None = None

    @property
    def _most(self) -> float:
        """Seconds without the end of a pass after which the process should be restarted."""
        return self.every * 3 + 120

    def begins(self) -> None:
        """Note that a pass begins."""
        with self._state:
            self._began = self._clock()
            self._since = min(self._since, self._began)

    def wrote(self) -> None:
        """Note that the running pass has written something."""
        with self._state:
            self._since = max(self._since, self._clock())

    def acted(self) -> None:
        """Note that the running pass came to its writes, so that the next one may take as long."""
        with self._state:
            self._twice = 2 * (self._clock() - self._began)

    def works(self) -> None:
        """Note that the running pass does what it should."""
        with self._state:
            self._worked, self._trouble = self._clock(), None

    def failed(self, error: Exception) -> int:
        """Note that a pass has failed with an error of the program; return how many have in a row."""
        with self._state:
            self._trouble = Trouble.after(self._trouble, error)
            return self._trouble.failures

    def ends(self, next_in: float | None = math.inf) -> None:
        """Note that the pass has ended, and that the next one begins in so many seconds at the latest.

        None: it ended with an error of the program.
        """
        with self._state:
            self._ended = self._clock()
            if next_in is not None:
                self._since = self._ended + max(0.0, next_in)

    def stands_still(self) -> str:
        """Return that passes stand still, and for how long, else an empty text."""
        with self._state:
            silence = self._clock() - self._since
            longest = min(max(LONGEST, self._twice), self._most)
            return f"no pass has ended for {silence:.0f} s" if silence > longest else ""

    def stuck(self) -> str:
        """Return that the process should be restarted: no pass has ended for very long. Else empty."""
        silence = self._clock() - self._ended
        return f"no pass has ended for {silence:.0f} s" if silence > self._most else ""

    def unready(self) -> str:
        """Return why the passes do not work, or an empty text."""
        with self._state:
            if self._trouble is not None:
                return f"the pass {self._trouble}"
            if self._worked is None:
                return "no pass has succeeded yet"
            silence = self._clock() - self._worked
        return f"the last successful pass was {silence:.0f} s ago" if silence > self.every * 3 else ""
