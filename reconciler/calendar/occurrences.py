"""When a window or a freeze applies: a rule in wall-clock time, expanded to runs in UTC.

Runs are half-open, [start, end), in ascending order, and do not touch each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol, runtime_checkable

from msgspec import Struct

from reconciler.calendar.crons import stretches
from reconciler.calendar.values import TimeOfDay, format_days, format_duration, to_utc

BEGINNING = datetime.min.replace(tzinfo=UTC)
"""The start of a run that started before the time that is looked at."""

FOREVER = datetime.max.replace(tzinfo=UTC)
"""The end of a run that does not end within the horizon."""

HORIZON = timedelta(days=400)
"""How far ahead to look: far enough for a yearly window and its next occurrence."""

KEPT = timedelta(days=400)
"""How long expanded runs are kept for reuse."""


class Run(Struct, frozen=True):
    """One continuous stretch of time, [start, end), UTC."""

    start: datetime
    end: datetime

    def holds(self, now: datetime) -> bool:
        """Return whether it contains `now`."""
        return self.start <= now < self.end


class Always(Struct, frozen=True):
    """Any time."""

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the only run."""
        yield Run(BEGINNING, FOREVER)

    def __str__(self) -> str:
        """Return the rule as text."""
        return "any time"


class Weekly(Struct, frozen=True):
    """From one wall-clock time to another, or past midnight, on the days on which it starts.

    Monday is day 0. Start and end are converted separately, so that a window until 05:00 also ends at 05:00
    in the night when the clocks change. If the clocks skip the whole window, it does not open on that day.
    """

    days: frozenset[int]
    start: TimeOfDay
    end: TimeOfDay
    zone: tzinfo

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the runs that end after `since`; they never stop."""
        # A pattern with a gap has one in every week, so nine days are enough to find the start of a run.
        edge = since - timedelta(days=9)
        yield from joined(self._each(edge), edge, since)

    def _each(self, edge: datetime) -> Iterator[Run]:
        day = edge.astimezone(self.zone).date() - timedelta(days=1)
        overnight = timedelta(days=1 if self.end <= self.start else 0)
        while True:
            if day.weekday() in self.days:
                run = Run(self.start.on(day, self.zone), self.end.on(day + overnight, self.zone))
                if run.start < run.end:
                    yield run
            day += timedelta(days=1)

    def __str__(self) -> str:
        """Return the rule as text: `Mon-Thu 22:00-05:00`."""
        return f"{format_days(self.days)} {self.start}-{self.end}"


class Cron(Struct, frozen=True):
    """From each firing of a cron schedule, for a length of elapsed time."""

    schedule: str
    duration: timedelta
    zone: tzinfo

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the runs that end after `since`, as long as the schedule fires."""
        edge = since - timedelta(days=9) - 2 * self.duration
        yield from joined(self._each(edge), edge, since)

    def _each(self, edge: datetime) -> Iterator[Run]:
        for start, end in stretches(self.schedule, self.duration, edge - self.duration, self.zone):
            yield Run(start, end)

    def __str__(self) -> str:
        """Return the rule as text: `0 2 * * 6#1 for 4h`."""
        return f"{self.schedule} for {format_duration(self.duration)}"


class Once(Struct, frozen=True):
    """From one moment to another. A moment without an offset is in `zone`."""

    start: datetime
    end: datetime
    zone: tzinfo

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the run, if it ends after `since`."""
        run = Run(to_utc(self.start, self.zone), to_utc(self.end, self.zone))
        if since < run.end and run.start < run.end:
            yield run

    def __str__(self) -> str:
        """Return both moments as text, in the form of the settings."""
        return f"{self.start.isoformat(timespec='minutes')} to {self.end.isoformat(timespec='minutes')}"


class Times(Protocol):
    """A rule that says when a window or a freeze applies; `str` of it is the rule as text."""

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the runs that end after `since`, ascending; they do not touch each other."""


@runtime_checkable
class Named(Protocol):
    """A rule whose occurrences have names for people."""

    def named(self, edge: datetime, last: datetime) -> Iterator[tuple[Run, str]]:
        """Yield what ends after `edge` and starts before `last` (UTC), with its name, in any order."""


def joined(runs: Iterator[Run], edge: datetime, since: datetime) -> Iterator[Run]:
    """Join runs that overlap or touch, and yield those that end after `since`.

    `runs` are sorted by start. A run that reaches back to `edge` gets the start BEGINNING, and a run that
    does not end within the horizon gets the end FOREVER.
    """
    current: Run | None = None
    for run in runs:
        if run.end <= edge:
            continue
        if current is not None and run.start <= current.end:
            current = Run(current.start, max(current.end, run.end))
            if since + KEPT + HORIZON < current.end:
                yield Run(current.start, FOREVER)
                return
            continue
        if current is not None and since < current.end:
            yield current
        current = Run(run.start if edge < run.start else BEGINNING, run.end)
    if current is not None and since < current.end:
        yield current
