"""Whether passes still end. The lock is renewed only while they do."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

LONGEST = 60.0
"""Seconds in which a pass ends, or writes something. A usual one takes less than a second."""


class Watchdog:
    """Counts how long passes stand still; safe for threads.

    A pass stands still if it neither ends nor writes anything for `LONGEST` seconds. If the last pass that
    reached its writes took long, the limit is twice that time: with a slow API server, no pass would succeed
    otherwise. A pass that is due and does not begin stands still as well. So does one that ends with an error
    of the program, because another process may not have that error.
    """

    def __init__(self, most: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a pass that is due now. `most` seconds is the longest that a pass may take at all."""
        self._clock, self._most = clock, most
        self._state = threading.Lock()
        self._twice = 0.0
        self._since = self._began = clock()

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

    def ends(self, next_in: float = math.inf) -> None:
        """Note that the pass has ended, and that the next one begins in so many seconds at the latest."""
        with self._state:
            self._since = self._clock() + next_in

    def stands_still(self) -> str:
        """Return that passes stand still, and for how long, else an empty text."""
        with self._state:
            silence = self._clock() - self._since
            longest = min(max(LONGEST, self._twice), self._most)
            return f"no pass has ended for {silence:.0f} s" if silence > longest else ""
