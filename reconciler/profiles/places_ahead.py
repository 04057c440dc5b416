"""The places of one limit of the budget over time: who holds one when, and when one is free."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from reconciler.calendar.occurrences import FOREVER


class Booking(Struct, frozen=True):
    """A place that a node holds from `begin` until `end` (UTC).

    `planned`: it begins with a planned start, which needs a free place. Any other node is out of service
    whether a place is free or not. `moves`: nobody knows its end, which is some time after now in each pass.
    """

    node: str
    begin: datetime
    end: datetime
    planned: bool = False
    moves: bool = False


class PlacesAhead:
    """The bookings of one limit. Each question takes a time that grows with the logarithm of their number."""

    def __init__(self, name: str, places: int) -> None:
        """Create it without bookings; `name` is for people, such as `maxUnavailable`."""
        self.name = name
        self.places = places
        self.bookings: dict[str, Booking] = {}
        self._planned: dict[str, Booking] = {}
        self._begins: list[datetime] = []
        self._ends: list[datetime] = []
        self._starts: list[datetime] = []
        # Spans in which no place is free, as far as they were looked at; sorted, and apart from each other.
        self._full: list[tuple[datetime, datetime]] = []

    def book(self, booking: Booking) -> None:
        """Add a booking; a node has one at most."""
        self.bookings[booking.node] = booking
        bisect.insort(self._begins, booking.begin)
        bisect.insort(self._ends, booking.end)
        if booking.planned:
            self._planned[booking.node] = booking
            bisect.insort(self._starts, booking.begin)

    def cancel(self, node: str) -> Booking:
        """Remove and return the booking of a node; KeyError if it has none."""
        booking = self.bookings.pop(node)
        self._full = [one for one in self._full if one[1] <= booking.begin or booking.end <= one[0]]
        del self._begins[bisect.bisect_left(self._begins, booking.begin)]
        del self._ends[bisect.bisect_left(self._ends, booking.end)]
        if booking.planned:
            del self._planned[node]
            del self._starts[bisect.bisect_left(self._starts, booking.begin)]
        return booking

    def held(self, at: datetime) -> int:
        """Return how many nodes hold a place at a moment."""
        return bisect.bisect_right(self._begins, at) - bisect.bisect_right(self._ends, at)

    def planned_between(self, begin: datetime, end: datetime) -> tuple[str, ...]:
        """Return the nodes with a planned start that hold a place at some time in [begin, end)."""
        return tuple(one.node for one in self._planned.values() if one.begin < end and begin < one.end)

    def free_from(
        self, moment: datetime, last: datetime, end: Callable[[datetime], datetime]
    ) -> datetime | None:
        """Return the first moment in [moment, last] at which a node may take a place until `end(start)`.

        It takes none from a start that is planned. None: there is no such moment.
        """
        while True:
            found = self._next_free(moment)
            if found is None or last < found:
                return None
            taken = self._last_full_start(found, end(found))
            if taken is None:
                return found
            moment = taken

    def _next_free(self, moment: datetime) -> datetime | None:
        """Return the first moment from `moment` on at which a place is free, None if there is none.

        What it passes is kept: the cases of a busy time all ask for the same moments.
        """
        begin, free = moment, moment
        while self.held(free) >= self.places:
            index = bisect.bisect_right(self._full, (free, FOREVER)) - 1
            if index >= 0 and free < self._full[index][1]:
                begin, free = min(begin, self._full[index][0]), self._full[index][1]
                del self._full[index]
            else:
                after = bisect.bisect_right(self._ends, free)
                free = self._ends[after] if after < len(self._ends) else FOREVER
            if free == FOREVER:
                break
        if begin < free:
            bisect.insort(self._full, (begin, free))
        return free if free != FOREVER else None

    def bears(self, begin: datetime, end: datetime) -> bool:
        """Whether one more booking at this time takes no place from a start that is booked."""
        return self._last_full_start(begin, end) is None

    def _last_full_start(self, begin: datetime, end: datetime) -> datetime | None:
        """Return the last booked start in [begin, end) that needs every place that is held then."""
        if bisect.bisect_left(self._begins, end) - bisect.bisect_right(self._ends, begin) < self.places:
            return None
        first = bisect.bisect_left(self._starts, begin)
        for index in range(bisect.bisect_left(self._starts, end) - 1, first - 1, -1):
            if self.held(self._starts[index]) >= self.places:
                return self._starts[index]
        return None
