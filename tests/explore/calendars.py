"""A calendar in an object of the cluster, which people change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.moments import to_text
from tests.explore.moves import move

if TYPE_CHECKING:
    from tests.explore.play import Play


@dataclass(slots=True)
class Calendars:
    """A CalendarReader that finds the same content at each place."""

    found: CalendarText = CalendarText("[]")

    def read(self, places: Sequence[CalendarPlace], now: datetime) -> Mapping[str, CalendarText]:
        """Return the content of each place."""
        del now
        return {place.name: self.found for place in places}


_SPANS = {"0 to 60": (0, 60), "0 to 600": (0, 600), "30 to 90": (30, 90), "-60 to 10000": (-60, 10000)}


@move("calendar", 5, values=("", *_SPANS, "unreadable"), on_node=False)
def calendar(play: Play, _: str, value: str) -> None:
    """Change the content of the calendar: no event, one event from and to so many minutes, or unreadable."""
    if value == "unreadable":
        play.calendars.found = CalendarText(unread="403 Forbidden")
    elif value:
        begin, end = (to_text(play.now + timedelta(minutes=one)) for one in _SPANS[value])
        play.calendars.found = CalendarText(f"- {{start: {begin}, end: {end}}}")
    else:
        play.calendars.found = CalendarText("[]")
    play.wake()
