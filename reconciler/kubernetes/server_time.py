"""The time of the API server, from the `Date` of its answers.

Passes reckon in it, so a local clock that is wrong, or that somebody sets, changes nothing. Between two
answers the time goes on by a clock that counts through suspend and that nobody sets.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from statistics import median
from typing import NamedTuple

from reconciler.model import limits
from reconciler.model.clocks import CLOCK_TOLERANCE, Disagreement

AGREED = 60.0
"""Seconds for which most answers have to contradict the known time until theirs counts, and for which one
that contradicts it is a disagreement.
"""

_TOLERANCE = CLOCK_TOLERANCE.total_seconds()


_THROUGH_SUSPEND: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""On Linux the monotonic clock stops while the machine sleeps. On a Mac it does not, and is the only one."""


def boottime() -> float:
    """Return the seconds since boot, including those in which the machine or the process slept."""
    return time.clock_gettime(_THROUGH_SUSPEND)


_FEW = 5
"""Answers of which each one may be right, however many contradict it."""

_MINORITY = 0.4
"""The part of the answers below which those that contradict the others are wrong: one server of three."""

_MOST = 500
"""Answers that are kept."""


class ServerTime:
    """What is known of the server's time; safe for threads.

    All numbers are seconds. The offset is the server's Unix time minus `clock`. Several servers may answer
    under one address, and one of them may be wrong: most answers of the last minute decide.
    """

    def __init__(self, clock: Callable[[], float] = boottime, wall: Callable[[], float] = time.time) -> None:
        """Use a clock that nobody sets; `wall` (Unix time) counts until the first answer."""
        self.clock = clock
        self._wall = wall
        self._lock = threading.Lock()
        self._offset: float | None = None
        self._latest = float("-inf")
        self._answers: deque[_Answer] = deque(maxlen=_MOST)
        self._contradicted: float | None = None
        """Since when there have been answers that contradict the offset."""

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

    def disagreement(self) -> Disagreement | None:
        """Return what answers of the last minute say that contradict `now`, None if they agree with it."""
        with self._lock:
            offset = self._offset
            if offset is None:
                return None
            self._forget(self.clock())
            away = self._others(offset)
            # The larger part of those that are ahead and those that are behind.
            ahead, behind = [by for by in away if by > 0], [by for by in away if by < 0]
            side = max((ahead, behind), key=len)
            if not side:
                return None
            answers = len(self._answers)
            counts = answers < _FEW or len(side) / answers >= _MINORITY
            return Disagreement(timedelta(seconds=round(median(side))), len(side), answers, counts)

    def note(self, date: str | None, sent: float, received: float) -> None:
        """Take the `Date` of an answer, and when its request was sent and answered, by the clock."""
        moment = _read(date)
        if moment is None:
            return
        # The header is cut to whole seconds, and was written between the two moments.
        answer = _Answer(received, moment - received, moment + 1 - sent)
        with self._lock:
            self._forget(received)
            self._answers.append(answer)
            if self._offset is None:
                self._offset = answer.middle
                return
            if answer.away(self._offset) == 0.0:
                self._offset = min(max(self._offset, answer.low), answer.high)
                return
            if self._contradicted is None:
                self._contradicted = received
            away = self._others(self._offset)
            other = median(away)
            agreed = sum(abs(by - other) <= _TOLERANCE for by in away)
            if received - self._contradicted >= AGREED and agreed / len(self._answers) > 1 - _MINORITY:
                self._offset, self._contradicted = self._offset + other, None

    def _forget(self, now: float) -> None:
        while self._answers and now - self._answers[0].received >= AGREED:
            self._answers.popleft()
        # Each answer of the API server comes here, and nearly all agree: then nothing is looked through.
        if self._contradicted is None or self._offset is None:
            return
        if not self._others(self._offset):
            self._contradicted = None

    def _others(self, offset: float) -> list[float]:
        return [away for answer in self._answers if (away := answer.away(offset))]


class _Answer(NamedTuple):
    """When an answer came, and between which offsets that of its server is."""

    received: float
    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    def away(self, offset: float) -> float:
        """Return how far the server is ahead of this offset, 0 if that is within the tolerance."""
        nearest = min(max(offset, self.low), self.high)
        return self.middle - offset if abs(offset - nearest) > _TOLERANCE else 0.0


def _read(date: str | None) -> float | None:
    try:
        return limits.moment(parsedate_to_datetime(date or "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
