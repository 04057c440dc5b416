"""Virtual time: what is to happen stands on an agenda, and time moves only when somebody says so."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Condition


class VirtualClock:
    """A clock for one thread (port `Clock`); what falls due while time moves is done then, in order."""

    def __init__(self, start: datetime) -> None:
        """Take the first moment, aware, UTC."""
        self._now = start
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._number = 0

    def now(self) -> datetime:
        """Return the time, aware, UTC."""
        return self._now

    def at(self, moment: datetime, action: Callable[[], None]) -> None:
        """Do something at a moment; what was asked for first is done first, and the past means now."""
        self._number += 1
        heapq.heappush(self._agenda, (max(moment, self._now), self._number, action))

    def after(self, pause: timedelta, action: Callable[[], None]) -> None:
        """Do something after a while."""
        self.at(self._now + pause, action)

    def next(self) -> datetime | None:
        """Return when the next thing happens, None when nothing will."""
        return self._agenda[0][0] if self._agenda else None

    def step(self) -> None:
        """Let time pass until the next thing on the agenda, and do it, if there is one."""
        if self._agenda:
            moment, _, action = heapq.heappop(self._agenda)
            self._now = max(self._now, moment)
            action()

    def advance(self, until: datetime) -> None:
        """Let time pass up to and including a moment; an action that raises has been taken off."""
        while self._agenda and self._agenda[0][0] <= until:
            self.step()
        self._now = max(self._now, until)

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """Let the time pass that a waiting thread would sleep; nobody else is there to notify it."""
        del condition
        if timeout is not None:
            self.advance(self._now + timedelta(seconds=timeout))
        elif (moment := self.next()) is not None:
            self.advance(moment)
