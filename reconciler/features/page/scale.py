"""The time of the page's timeline, in percent of its width."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.values import DAY_NAMES
from reconciler.features.page.facts import AHEAD, BACK

_STEP = timedelta(minutes=15)
"""Clocks differ from UTC by full quarters of an hour."""

_EVERY = 6
"""Hours between two ticks."""

_ROOM = timedelta(hours=3)
"""How far the label of a tick is from that of `now`."""


class Tick(Struct, frozen=True):
    """A round time of day; `day` is whether a day begins with it."""

    at: float
    label: str
    day: bool


class Scale(Struct, frozen=True):
    """The time around `now` (UTC), which people read in `zone`."""

    now: datetime
    zone: ZoneInfo

    @property
    def start(self) -> datetime:
        """The left end."""
        return self.now - BACK

    @property
    def end(self) -> datetime:
        """The right end."""
        return self.now + AHEAD

    def holds(self, moment: datetime) -> bool:
        """Whether the timeline shows that moment."""
        return self.start <= moment <= self.end

    def at(self, moment: datetime) -> float:
        """Return the place of a moment in percent; what is outside is at the end."""
        part = (min(max(moment, self.start), self.end) - self.start) / (BACK + AHEAD)
        return round(part * 100, 2)

    def ticks(self) -> Iterator[Tick]:
        """Yield the round times of day, in order. One beside `now` has no label."""
        moment = self.start.replace(minute=0, second=0, microsecond=0)
        while (moment := moment + _STEP) < self.end:
            local = moment.astimezone(self.zone)
            if local.minute or local.hour % _EVERY:
                continue
            day = local.hour == 0
            label = f"{DAY_NAMES[local.weekday()]} {local:%d}" if day else f"{local:%H:%M}"
            if abs(moment - self.now) < _ROOM:
                label = ""
            yield Tick(self.at(moment), label, day)
