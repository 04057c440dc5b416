"""When the next pass starts: at once for what is new, once a second for what keeps changing."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

TOGETHER = 0.05
"""Seconds. Changes come in groups (taint, label and condition of a node). One pass handles them together."""

APART = 1.0
"""Seconds between the passes for a cause that keeps changing."""

QUIET = 10.0
"""Seconds after the last pass for a cause until its next change counts as a first one again."""

MOST_FIRST = 10
"""Passes at once within `QUIET` seconds for first changes that are not urgent."""


class Cause(Struct, frozen=True):
    """What asks for a pass, by name: a node, the settings, a drain that has ended.

    An urgent change of a node is a cause of its own, so that other changes of that node do not delay it.
    """

    name: str
    urgent: bool = False


class _Wish(Struct, frozen=True):
    """A cause that waits: since when, and whether it is the first change after a quiet time."""

    since: float
    first: bool


class Pacer:
    """Decides when the next pass starts. Times are arguments, in seconds of a clock that never goes back.

    A pass serves all causes that wait. The first change of a cause starts a pass at once. Further changes of
    the same cause start one pass a second. They also wait until a second after any other pass, so that many
    nodes that keep changing cost no more than one. Urgent causes wait for their own last pass only. No change
    waits longer than `APART` and `TOGETHER`, except where passes take longer than a second: then half of the
    time is left to other work.
    """

    def __init__(self) -> None:
        """Start with nothing that waits."""
        self._waiting: dict[Cause, _Wish] = {}
        self._served: dict[Cause, float] = {}
        self._first_passes: deque[float] = deque(maxlen=MOST_FIRST)
        self._began = float("-inf")
        self._rest = APART
        self._due: float | None = None

    def note(self, cause: Cause, now: float) -> None:
        """Note that something has changed. A cause that waits already keeps its place."""
        if cause in self._waiting:
            return
        served = self._served.get(cause)
        first = served is None or now - served >= QUIET
        if first and not cause.urgent and self._first_used_up(now):
            first = False
        self._waiting[cause] = wish = _Wish(now, first)
        start = self._start(cause, wish)
        self._due = start if self._due is None else min(self._due, start)

    def due(self) -> float | None:
        """Return when the next pass starts, in the past if it is late; None if nothing waits."""
        return self._due

    def begin(self, now: float) -> None:
        """Note that a pass begins. It reads everything, so it serves all that wait."""
        if any(wish.first and not cause.urgent for cause, wish in self._waiting.items()):
            self._first_passes.append(now)
        self._served = {cause: at for cause, at in self._served.items() if now - at < QUIET}
        self._served.update(dict.fromkeys(self._waiting, now))
        self._waiting.clear()
        self._began, self._due = now, None

    def end(self, now: float) -> None:
        """Note that the pass has ended: what keeps changing then rests as long as the pass took."""
        self._rest = max(APART, 2 * (now - self._began))
        starts = [self._start(cause, wish) for cause, wish in self._waiting.items()]
        self._due = min(starts, default=None)

    def _start(self, cause: Cause, wish: _Wish) -> float:
        """Return when the pass for a cause starts."""
        soon = wish.since + TOGETHER
        if wish.first:
            return soon
        if cause.urgent:
            return max(soon, self._served.get(cause, float("-inf")) + APART)
        return max(soon, self._began + self._rest)

    def _first_used_up(self, now: float) -> bool:
        passes = self._first_passes
        return len(passes) == MOST_FIRST and now - passes[0] < QUIET
