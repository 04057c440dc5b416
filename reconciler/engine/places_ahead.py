"""The places of one limit of the budget over time: who holds one when, and when one is free."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from reconciler.calendar.occurrences import FOREVER


@dataclass(frozen=True, slots=True)
class Booking:
    """A place that a node holds from `begin` until `end` (UTC).

    `places` is how many the limit has for its start, which counts itself: it must not begin with fewer. None
    means that it asks nobody: the node is out of service whether a place is free or not.
    """

    node: str
    begin: datetime
    end: datetime
    places: int | None = None


class PlacesAhead:
    """The bookings of one limit. Each question takes a time that grows with the logarithm of their number."""

    def __init__(self, name: str, places: int) -> None:
        """Create it without bookings; `name` is for people, such as `maxUnavailable`."""
        self.name = name
        self.places = places
        self.bookings: dict[str, Booking] = {}
        self._begins: list[datetime] = []
        self._ends: list[datetime] = []
        self._starts: list[tuple[datetime, int]] = []

    def book(self, booking: Booking) -> None:
        """Add a booking; a node has one at most."""
        self.bookings[booking.node] = booking
        bisect.insort(self._begins, booking.begin)
        bisect.insort(self._ends, booking.end)
        if booking.places is not None:
            bisect.insort(self._starts, (booking.begin, booking.places))

    def cancel(self, node: str) -> Booking:
        """Remove and return the booking of a node; KeyError if it has none."""
        booking = self.bookings.pop(node)
        del self._begins[bisect.bisect_left(self._begins, booking.begin)]
        del self._ends[bisect.bisect_left(self._ends, booking.end)]
        if booking.places is not None:
            del self._starts[bisect.bisect_left(self._starts, (booking.begin, booking.places))]
        return booking

    def held(self, at: datetime) -> int:
        """Return how many nodes hold a place at a moment."""
        return bisect.bisect_right(self._begins, at) - bisect.bisect_right(self._ends, at)

    def between(self, begin: datetime, end: datetime) -> tuple[str, ...]:
        """Return the names of the nodes that hold a place at some time in [begin, end), sorted."""
        return tuple(
            sorted(one.node for one in self.bookings.values() if one.begin < end and begin < one.end)
        )

    def free_from(
        self, moment: datetime, end: Callable[[datetime], datetime], places: int
    ) -> datetime | None:
        """Return the first moment from `moment` on at which a node may take a place until `end(start)`.

        It has one of `places`, and takes none from a start that is booked. None: there is no such moment.
        """
        while True:
            while self.held(moment) >= places:
                later = self._next_end(moment)
                if later is None:
                    return None
                moment = later
            taken = self._last_full_start(moment, end(moment))
            if taken is None:
                return moment
            later = self._next_end(taken)
            if later is None:
                return None
            moment = later

    def _next_end(self, moment: datetime) -> datetime | None:
        """Return when the next booking ends after a moment, None if none does for as long as is known."""
        index = bisect.bisect_right(self._ends, moment)
        return None if index == len(self._ends) or self._ends[index] == FOREVER else self._ends[index]

    def bears(self, begin: datetime, end: datetime) -> bool:
        """Whether one more booking at this time takes no place from a start that is booked."""
        return self._last_full_start(begin, end) is None

    def _last_full_start(self, begin: datetime, end: datetime) -> datetime | None:
        """Return the last booked start in [begin, end) that needs every place that is held then."""
        overlapping = bisect.bisect_left(self._begins, end) - bisect.bisect_right(self._ends, begin)
        first = bisect.bisect_left(self._starts, (begin, -1))
        last = bisect.bisect_left(self._starts, (end, -1))
        for index in range(last - 1, first - 1, -1):
            at, places = self._starts[index]
            if overlapping >= places and self.held(at) >= places:
                return at
        return None
