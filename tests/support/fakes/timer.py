"""Passes by a clock that a test moves: a timer without a thread, and changes played through the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.runtime.pass_loop import Cause, PassLoop
from jobs.runtime.supervised import Ending
from jobs.runtime.timer import PassTimer

BEFORE = -100.0
"""When the pass before all changes is made."""


class HandTimer(PassTimer):
    """Notes the moment at which the timer would ring; the test then makes the pass."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.at = clock()

    def ring_in(self, seconds: float) -> None:
        """See PassTimer."""
        self.at = self._clock() + seconds


@dataclass
class Played:
    """When passes began, and for each change when the pass that served it began."""

    passes: list[float] = field(default_factory=list)
    served: list[tuple[float, Cause, float]] = field(default_factory=list)

    def delay(self, cause: Cause) -> list[float]:
        return [began - at for at, of, began in self.served if of == cause]


class HandLoop:
    """A loop of passes that take so many seconds, `every` seconds apart at most. Its clock moves by hand."""

    def __init__(self, every: float = 3600.0, takes: float = 0.0, again: float | None = None) -> None:
        self.now = BEFORE
        self._takes, self._again = takes, again
        self.timer = HandTimer(lambda: self.now)
        self.loop = PassLoop(
            self._run, every, lambda *_: None, Ending(), timer=lambda ring: self.timer, clock=lambda: self.now
        )
        self._changes: list[tuple[float, Cause]] = []
        self._waiting: list[tuple[float, Cause]] = []
        self.played = Played()
        self.loop.make_pass()
        self.played.passes.clear()

    def _run(self) -> float | None:
        began = self.now
        self.played.passes.append(began)
        self.played.served += [(at, cause, began) for at, cause in self._waiting]
        self._waiting.clear()
        while self._changes and self._changes[0][0] < began + self._takes:
            self._come()
        self.now = began + self._takes
        return self._again

    def _come(self) -> None:
        at, cause = self._changes.pop(0)
        self.now = max(self.now, at)
        self._waiting.append((at, cause))
        self.loop.wake(cause)

    def play(self, changes: list[tuple[float, Cause]]) -> Played:
        """Let the changes come, and return once all are served."""
        self._changes = sorted(changes, key=lambda change: change[0])
        while self._changes or self._waiting:
            if not self._changes or self.timer.at <= self._changes[0][0]:
                self.ring()
            else:
                self._come()
        return self.played

    def ring(self) -> None:
        """Make the pass that is due next, at its moment."""
        self.now = max(self.now, self.timer.at)
        self.loop.make_pass()


def play(changes: list[tuple[float, Cause]], takes: float = 0.0) -> Played:
    """Play changes through a loop whose passes take so many seconds."""
    return HandLoop(takes=takes).play(changes)
