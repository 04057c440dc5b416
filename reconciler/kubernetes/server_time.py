"""The time of the API server, from the `Date` of its answers.

Passes reckon in it, so a local clock that is wrong, or that somebody sets, changes nothing. Between two
answers the time goes on by a clock that counts through suspend and that nobody sets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from reconciler.model import limits
from reconciler.model.node import CLOCK_TOLERANCE

AGREED = 60.0
"""Seconds for which answers have to agree with each other until a time that is far from the known one counts,
and for which an answer that contradicts it is a reason for doubt.
"""

_TOLERANCE = CLOCK_TOLERANCE.total_seconds()


_THROUGH_SUSPEND: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""On Linux the monotonic clock stops while the machine sleeps. On a Mac it does not, and is the only one."""


def boottime() -> float:
    """Return the seconds since boot, including those in which the machine or the process slept."""
    return time.clock_gettime(_THROUGH_SUSPEND)


class ServerTime:
    """What is known of the server's time; safe for threads.

    All numbers are seconds. The offset is the server's Unix time minus `clock`.
    """

    def __init__(self, clock: Callable[[], float] = boottime, wall: Callable[[], float] = time.time) -> None:
        """Use a clock that nobody sets; `wall` (Unix time) counts until the first answer."""
        self.clock = clock
        self._wall = wall
        self._lock = threading.Lock()
        self._offset: float | None = None
        self._latest = float("-inf")
        self._rival: tuple[float, float] | None = None
        """Another offset, and since when all answers agree with it."""
        self._contradicted = float("-inf")
        self._distance = 0.0

    @property
    def known(self) -> bool:
        """Whether any answer had a date."""
        return self._offset is not None

    def now(self) -> datetime:
        """Return the server's time, UTC; the local time before the first answer. No small step goes back."""
        with self._lock:
            if self._offset is None:
                return datetime.fromtimestamp(self._wall(), UTC)
            now = self.clock() + self._offset
            if now > self._latest or self._latest - now > _TOLERANCE:
                self._latest = now
            return datetime.fromtimestamp(self._latest, UTC)

    def doubt(self) -> timedelta | None:
        """Return `now` minus what answers of the last minute say that contradict it, None before any."""
        with self._lock:
            if self._offset is None:
                return None
            recent = self.clock() - self._contradicted < AGREED
            return timedelta(seconds=self._distance if recent else 0.0)

    def note(self, date: str | None, sent: float, received: float) -> None:
        """Take the `Date` of an answer, and when its request was sent and answered, by the clock."""
        moment = _read(date)
        if moment is None:
            return
        # The header is cut to whole seconds, and was written between the two moments.
        low, high = moment - received, moment + 1 - sent
        with self._lock:
            if self._offset is None:
                self._offset = (low + high) / 2
                return
            nearest = min(max(self._offset, low), high)
            self._distance = self._offset - nearest if abs(self._offset - nearest) > _TOLERANCE else 0.0
            if not self._distance:
                self._offset, self._rival = nearest, None
                return
            self._contradicted = received
            rival, since = self._rival or (nearest, received)
            if abs(min(max(rival, low), high) - rival) > _TOLERANCE:
                rival, since = nearest, received
            self._rival = rival, since
            if received - since >= AGREED:
                self._offset, self._rival, self._contradicted = (low + high) / 2, None, float("-inf")


def _read(date: str | None) -> float | None:
    try:
        return limits.moment(parsedate_to_datetime(date or "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
