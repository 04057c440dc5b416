"""The last scrape: a process that ends shows its last metrics until they have been read, for a short time."""

from __future__ import annotations

import time
from collections.abc import Callable

from jobs.runtime.health import HealthServer
from jobs.runtime.supervised import Ending, wait_until_set

LONGEST = 20.0
"""Seconds after the signal in which the last scrape may come. Kubernetes kills a Pod after 30 by default."""

PATH = "/metrics"


class LastScrape:
    """Waits for a scrape that sees what the end of the process has counted."""

    def __init__(self, ending: Ending, clock: Callable[[], float] = time.monotonic) -> None:
        """Take what asks the process to end; `clock` is in seconds."""
        self._ending, self._clock = ending, clock
        self._ends = 0.0

    def wanted(self) -> None:
        """Note that the process was just asked to end."""
        self._ends = self._clock() + LONGEST

    def wait(self, health: HealthServer) -> None:
        """Wait for the next scrape, if there was one before, at most until LONGEST after `wanted`.

        A further signal ends the wait. Call it once nothing else waits for `ending.stop`, which it clears.
        """
        if self._ending.error is not None:
            return  # Kubernetes is to start the process again soon
        stop = self._ending.stop
        stop.clear()
        if health.once_read(PATH, stop.set):
            wait_until_set(stop, self._ends, self._clock)
