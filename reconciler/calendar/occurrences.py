"""When a window or a freeze is in force: a rule in wall-clock words, expanded to runs of UTC time.

Runs are half-open, [start, end), in ascending order, and never touch each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from reconciler.calendar.crons import stretches
from reconciler.calendar.values import TimeOfDay, format_days, format_duration, to_utc

BEGINNING = datetime.min.replace(tzinfo=UTC)
"""Start of a run that has been in force for longer than anybody looks back."""

FOREVER = datetime.max.replace(tzinfo=UTC)
"""End of a run of which no end is in sight."""

HORIZON = timedelta(days=400)
"""How far ahead anybody looks: a yearly window, and its next year's neighbour, are seen."""

KEPT = timedelta(days=400)
"""How long runs once expanded serve whoever keeps them."""


@dataclass(frozen=True, slots=True)
class Run:
    """One unbroken stretch of time, [start, end), UTC."""

    start: datetime
    end: datetime

    def holds(self, now: datetime) -> bool:
        """Say whether `now` lies in it."""
        return self.start <= now < self.end


@dataclass(frozen=True, slots=True)
class Always:
    """Any time."""

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the one run there is."""
        yield Run(BEGINNING, FOREVER)

    def __str__(self) -> str:
        """Say so."""
        return "any time"


@dataclass(frozen=True, slots=True)
class Weekly:
    """From one wall-clock time to another, past midnight if need be, on the days on which it starts.

    Monday is day 0. Start and end are converted one by one, so that a window that says 05:00 ends at 05:00
    also in the night in which the clocks change. Where they skip the whole of it, there is none that day.
    """

    days: frozenset[int]
    start: TimeOfDay
    end: TimeOfDay
    zone: tzinfo

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the runs that end after `since`, without end."""
        # A pattern that has a gap has one in every week, so nine days show where a run really began.
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
        """Write it as a person would: `Mon-Thu 22:00-05:00`."""
        return f"{format_days(self.days)} {self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class Cron:
    """From each firing of a cron schedule on, for a length of elapsed time."""

    schedule: str
    duration: timedelta
    zone: tzinfo

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the runs that end after `since`; none where the schedule fires no more."""
        edge = since - timedelta(days=9) - 2 * self.duration
        yield from joined(self._each(edge), edge, since)

    def _each(self, edge: datetime) -> Iterator[Run]:
        for start, end in stretches(self.schedule, self.duration, edge - self.duration, self.zone):
            yield Run(start, end)

    def __str__(self) -> str:
        """Write `0 2 * * 6#1 for 4h`."""
        return f"{self.schedule} for {format_duration(self.duration)}"


@dataclass(frozen=True, slots=True)
class Once:
    """From one moment to another; a moment without an offset is read in `zone`."""

    start: datetime
    end: datetime
    zone: tzinfo

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the run, if it ends after `since`."""
        run = Run(to_utc(self.start, self.zone), to_utc(self.end, self.zone))
        if since < run.end and run.start < run.end:
            yield run

    def __str__(self) -> str:
        """Write both moments, as they were given."""
        return f"{self.start.isoformat(timespec='minutes')} to {self.end.isoformat(timespec='minutes')}"


Times = Always | Weekly | Cron | Once


def joined(runs: Iterator[Run], edge: datetime, since: datetime) -> Iterator[Run]:
    """Join what overlaps or touches, and yield what ends after `since`.

    `runs` ascend by start. A run that reaches back to `edge` began at a time unknown, and one whose end
    isn't found within the horizon has none in sight.
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
