"""Virtual time: future actions are on an agenda, and time moves only when the caller advances it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Condition


class VirtualClock:
    """A clock for one thread (port `Clock`). It runs the actions that become due, in order."""

    def __init__(self, start: datetime) -> None:
        """Start at this moment, aware, UTC."""
        self._now = start
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._number = 0

    def now(self) -> datetime:
        """Return the time, aware, UTC."""
        return self._now

    def at(self, moment: datetime, action: Callable[[], None]) -> None:
        """Run an action at a moment, or now if the moment has passed.

        Actions of one moment keep their order.
        """
        self._number += 1
        heapq.heappush(self._agenda, (max(moment, self._now), self._number, action))

    def after(self, pause: timedelta, action: Callable[[], None]) -> None:
        """Run an action after a delay."""
        self.at(self._now + pause, action)

    def next(self) -> datetime | None:
        """Return the time of the next action, None if there is none."""
        return self._agenda[0][0] if self._agenda else None

    def step(self) -> None:
        """Advance to the next action on the agenda, if there is one, and run it."""
        if self._agenda:
            moment, _, action = heapq.heappop(self._agenda)
            self._now = max(self._now, moment)
            action()

    def advance(self, until: datetime) -> None:
        """Advance up to and including a moment. An action that raises is removed from the agenda."""
        while self._agenda and self._agenda[0][0] <= until:
            self.step()
        self._now = max(self._now, until)

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """Advance by the timeout, because with one thread no one can notify the condition."""
        del condition
        if timeout is not None:
            self.advance(self._now + timedelta(seconds=timeout))
        elif (moment := self.next()) is not None:
            self.advance(moment)


class SkewedClock(VirtualClock):
    """The clock of a process, which is `ahead` of another one (behind it, if negative), and moves with it."""

    def __init__(self, true: VirtualClock) -> None:
        """Show the time of this clock."""
        super().__init__(true.now())
        self._true = true
        self.ahead = timedelta()

    def now(self) -> datetime:
        """Return the time as the process believes it."""
        return self._true.now() + self.ahead

    def at(self, moment: datetime, action: Callable[[], None]) -> None:
        """Run an action at what is this moment by the clock as it is now."""
        self._true.at(moment - self.ahead, action)

    def next(self) -> datetime | None:
        """Return the time of the next action by this clock, None if there is none."""
        found = self._true.next()
        return found + self.ahead if found is not None else None

    def step(self) -> None:
        """Advance the other clock to its next action, and run it."""
        self._true.step()

    def advance(self, until: datetime) -> None:
        """Advance the other clock up to what is this moment by this clock."""
        self._true.advance(until - self.ahead)

    def after(self, pause: timedelta, action: Callable[[], None]) -> None:
        """Run an action after a delay."""
        self._true.after(pause, action)
