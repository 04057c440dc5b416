"""Columns of elapsed time: each is as long as every other, also in a night in which the clocks change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.features.planning.moments import day_text

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_STEPS = tuple(
    minutes * _MINUTE
    for minutes in (10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320, 10080)
)
_TICKS = tuple(minutes * _MINUTE for minutes in (60, 120, 180, 240, 360, 720)) + tuple(
    days * _DAY for days in (1, 2, 7, 14, 28)
)

_LOOK = timedelta(minutes=30)
"""Clocks change at full and half hours of UTC."""

_LABEL = 8
"""Columns that a label of the axis needs, with a space behind it."""


class Timeline(Struct, frozen=True):
    """So many columns of `step` each, from `start` (UTC) on; people read them in `zone`."""

    start: datetime
    step: timedelta
    columns: int
    zone: ZoneInfo

    @property
    def end(self) -> datetime:
        """The end of the last column."""
        return self.start + self.columns * self.step

    def column(self, moment: datetime) -> int:
        """Return the column of a moment; it is negative or too large outside of the timeline."""
        return (moment - self.start) // self.step

    def cells(self, start: datetime, end: datetime) -> range:
        """Return the columns that [start, end) touches."""
        if end <= start:
            return range(0)
        last = -((self.start - end) // self.step)
        return range(max(self.column(start), 0), min(last, self.columns))

    def axis(self) -> str:
        """Return the line with the days and times of day."""
        ticks = list(self._ticks())
        if not ticks or ticks[0][0] > len("|now"):
            ticks.insert(0, (0, "now"))
        line = ""
        for column, label in ticks:
            text = f"|{label}"
            if (not line or len(line) < column) and column + len(text) <= self.columns:
                line = line.ljust(column) + text
        return line

    def clock_change(self) -> tuple[datetime, str, str] | None:
        """Return when the clocks first change (UTC), and the names of the offsets before and after."""
        before = self.start.astimezone(self.zone)
        moment = self.start.replace(minute=0, second=0, microsecond=0)
        while (moment := moment + _LOOK) < self.end:
            after = moment.astimezone(self.zone)
            if after.utcoffset() != before.utcoffset():
                return moment, before.tzname() or "", after.tzname() or ""
        return None

    def _ticks(self) -> Iterator[tuple[int, str]]:
        """Yield the columns at which a day, or a round time of day, begins."""
        apart = next((tick for tick in _TICKS if tick >= _LABEL * self.step), _TICKS[-1])
        far = self.end - self.start > timedelta(days=28)
        day = self.start.astimezone(self.zone).date()
        for _ in range((self.end - self.start) // _DAY + 2):
            for moment in _of_day(day, apart, self.zone):
                local = moment.astimezone(self.zone)
                if self.start <= moment < self.end:
                    label = f"{local:%H:%M}" if local.time() != time() else day_text(local, far=far)
                    yield self.column(moment), label
            day += max(apart, _DAY)


def _of_day(day: date, apart: timedelta, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the round times of a local day in UTC; those that the clocks skip are left out."""
    for number in range(max(_DAY // apart, 1)):
        wall = datetime.combine(day, time()) + number * apart
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) == wall:
            yield moment


def timeline(now: datetime, needed: datetime, until: datetime, width: int, zone: ZoneInfo) -> Timeline:
    """Return a timeline of at most `width` columns from a round time before `now` on.

    It has the shortest columns with which it reaches `needed`, and ends at `until` at the latest.
    """
    midnight = datetime.combine(now.astimezone(zone).date(), time(), tzinfo=zone).astimezone(UTC)
    for step in _STEPS:
        start = midnight + (now - midnight) // step * step
        if -((start - needed) // step) <= width:
            break
    columns = min(width, -((start - until) // step))
    return Timeline(start, step, max(columns, 1), zone)
