"""What lies ahead for one node: its openings, and the absolute freezes that apply to it."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.calendar.occurrences import FOREVER
from reconciler.model.selector import EVERYTHING, LabelSelector

ANY_TIME = "any time"
"""The name of an opening that needs no window."""


class Opening(Struct, frozen=True):
    """A stretch of time in which a drain may start, [start, end), UTC.

    `end` is None if it is more than 400 days away. `window` has the names of its windows, or `ANY_TIME` if
    it needs none. `selector` is the selector of the windows if the question was about all nodes.
    """

    start: datetime
    end: datetime | None
    window: str
    selector: LabelSelector = EVERYTHING

    @property
    def until(self) -> datetime:
        """Its end, or the last moment of the calendar."""
        return self.end or FOREVER


class Outlook:
    """The openings of the nodes that have the same windows and freezes, from `now` on.

    They are read from the calendar as far as a question needs them, and kept. `unfrozen` returns the first
    moment from a moment on at which no absolute freeze applies, None if there is none within 400 days.
    """

    def __init__(
        self, now: datetime, openings: Iterator[Opening], unfrozen: Callable[[datetime], datetime | None]
    ) -> None:
        """Use these openings, sorted by start; those that have ended before `now` are left out."""
        self.now = now
        self.unfrozen = unfrozen
        self._more = openings
        self._known: list[Opening] = []
        self._ends: list[datetime] = []

    def first_open(self, moment: datetime) -> tuple[datetime, Opening] | None:
        """Return the first moment from `moment` on that is inside an opening, and the opening."""
        self._read(moment)
        index = bisect.bisect_right(self._ends, moment)
        if index == len(self._known) and not self._read_one():
            return None
        opening = self._known[index]
        return max(opening.start, moment), opening

    def last_start(self, deadline: datetime, lead: timedelta) -> tuple[datetime, Opening] | None:
        """Return the last moment, from now to `deadline`, at which a drain may start, and the opening.

        The opening has the lead time left then. If none is that long, it is the start of the last one.
        """
        self._read(deadline)
        index = bisect.bisect_right([one.start for one in self._known], deadline)
        there = [one for one in self._known[:index] if one.until > self.now]
        for opening in reversed(there):
            last = min(deadline, opening.until - lead) if opening.end is not None else deadline
            if last >= max(opening.start, self.now):
                return last, opening
        return (max(there[-1].start, self.now), there[-1]) if there else None

    def _read(self, until: datetime) -> None:
        while (not self._known or self._known[-1].until <= until) and self._read_one():
            pass

    def _read_one(self) -> bool:
        found = next(self._more, None)
        if found is None:
            return False
        self._known.append(found)
        self._ends.append(found.until)
        return True
