"""When a window or a freeze applies: a rule in wall-clock time, expanded to runs in UTC.

Runs are half-open, [start, end), in ascending order, and do not touch each other. Unions and differences of
runs are lazy, because runs may go on forever. cronsim parses cron schedules and handles days with a clock
change. `* * * * *` fires every minute, but the clocks change twice a year: the firings of a day are the
same on every other day, so they are computed once.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from reconciler.calendar.values import (
    DAY_NAMES,
    MIDNIGHT,
    TimeOfDay,
    format_days,
    format_duration,
    parse_days,
    to_utc,
)

if TYPE_CHECKING:
    from cronsim import CronSim


_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAY = timedelta(days=1)

# Any start works for checking whether a schedule fires: cronsim looks fifty years ahead.
_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_LAST_LOOK = 366 * 60


def firings(schedule: str, after: datetime, zone: tzinfo) -> CronSim:
    """Return an iterator over the moments after `after` at which a schedule fires, ascending.

    Clock changes follow Debian's cron: a skipped time fires right after the gap, and a time that occurs
    twice fires once. Raises ValueError for an invalid schedule.
    """
    from cronsim import CronSim, CronSimError  # this import is slow, and only cron windows need it

    text = _MACROS.get(schedule.strip().lower(), schedule)
    if text.startswith("@"):
        raise ValueError(f"{schedule!r} is not a cron macro; the macros are {', '.join(_MACROS)}")
    if len(text.split()) != 5:
        raise ValueError(f"{schedule!r} is not a cron schedule; write five fields, like 0 2 * * 6#1")
    # cronsim recognizes UTC, which has no clock changes, only by this object.
    start = after.astimezone(UTC if getattr(zone, "key", "") == "UTC" else zone)
    try:
        return CronSim(text, start)
    except (CronSimError, AssertionError, ValueError) as error:
        why = f"{schedule!r} is not a cron schedule: {str(error).lower()}"
        raise ValueError(f"{why}{_instead_of_range(text.split()[4])}") from error


def _instead_of_range(days: str) -> str:
    """Return what to write instead of a range of days that goes over the end of the week, if that is one."""
    for part in days.split(","):
        first, dash, last = part.partition("-")
        try:
            start, end = (min(parse_days(each)) for each in (first, last)) if dash else (0, 0)
        except ValueError:
            continue
        # The week of cron begins on Sunday.
        if (start + 1) % 7 > (end + 1) % 7:
            named = ",".join(DAY_NAMES[(start + step) % 7].lower() for step in range((end - start) % 7 + 1))
            return f"; a range of cron does not go over Saturday: write {named} instead of {part}"
    return ""


def check_schedule(schedule: str) -> None:
    """Raise ValueError for an invalid cron schedule, and for one that never fires."""
    if next(firings(schedule, _SOME_DAY, UTC), None) is None:
        raise ValueError(f"{schedule!r} never fires")


def stretches(
    schedule: str, duration: timedelta, since: datetime, zone: tzinfo
) -> Iterator[tuple[datetime, datetime]]:
    """Yield [start, end) in UTC for each firing, by start, from the day before `since`.

    On days without a clock change, stretches that overlap or touch are already joined.
    """
    sim = firings(schedule, _SOME_DAY, zone)
    # The stretches of a day without a clock change, relative to midnight. `hours`, `minutes`, `months` and
    # `match_day` have no underscore, but are not documented. The documented interface is an iterator, which
    # takes one step per firing.
    pattern: list[tuple[timedelta, timedelta]] = []
    for hour in sorted(sim.hours):
        for minute in sorted(sim.minutes):
            start = timedelta(hours=hour, minutes=minute)
            if pattern and start <= pattern[-1][1]:
                pattern[-1] = (pattern[-1][0], start + duration)
            else:
                pattern.append((start, start + duration))
    day = since.astimezone(zone).date() - _DAY
    midnight = MIDNIGHT.on(day, zone)
    for _ in range(_LAST_LOOK):
        tomorrow = MIDNIGHT.on(day + _DAY, zone)
        if day.month not in sim.months or not sim.match_day(day):
            pass
        elif tomorrow - midnight == _DAY:
            for begin, end in pattern:
                yield midnight + begin, midnight + end
        else:
            for firing in firings(schedule, midnight - timedelta(seconds=1), zone):
                if firing.date() > day:
                    break
                yield firing.astimezone(UTC), firing.astimezone(UTC) + duration
        day, midnight = day + _DAY, tomorrow


class Span(Struct, frozen=True):
    """A run, and the names of the rules that it comes from, in the order in which they start."""

    run: Run
    names: tuple[str, ...] = ()


def union(sources: Iterable[Iterable[Span]], horizon: datetime) -> Iterator[Span]:
    """Yield the time in which at least one source applies. Spans that overlap or touch are joined.

    Each source is sorted by start. A span that continues after `horizon` gets no end, because sources that
    fill each other's gaps would be joined forever.
    """
    current: Span | None = None
    for span in heapq.merge(*sources, key=_start):
        if current is not None and span.run.start <= current.run.end:
            names = current.names + tuple(name for name in span.names if name not in current.names)
            current = Span(Run(current.run.start, max(current.run.end, span.run.end)), names)
            if horizon < span.run.start:
                yield Span(Run(current.run.start, FOREVER), names)
                return
            continue
        if current is not None:
            yield current
        current = span
    if current is not None:
        yield current


def subtract(spans: Iterable[Span], taken: Iterable[Span]) -> Iterator[Span]:
    """Yield `spans` without the time of `taken`. Both are sorted by start and have no overlaps."""
    rest = iter(taken)
    cut = next(rest, None)
    for span in spans:
        start = span.run.start
        while cut is not None and cut.run.start < span.run.end:
            if start < cut.run.start:
                yield Span(Run(start, cut.run.start), span.names)
            start = max(start, cut.run.end)
            if span.run.end < cut.run.end:
                break  # it may also overlap the next span
            cut = next(rest, None)
        if start < span.run.end:
            yield Span(Run(start, span.run.end), span.names)


def _start(span: Span) -> datetime:
    return span.run.start


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

    @property
    def days(self) -> str:
        """Its times by the days, `Sat 05:00 to Mon 19:00`; empty if they are not the same each week."""
        found = re.fullmatch(
            r"([0-9]{1,2}) ([0-9]{1,2}) \* \* ([A-Za-z0-7,*-]+)", " ".join(self.schedule.split())
        )
        if found is None:
            return ""
        minute, hour, written = found.groups()
        days = frozenset(range(7)) if written == "*" else parse_days(written)
        start = timedelta(hours=int(hour), minutes=int(minute))
        later, rest = divmod(start + self.duration, _DAY)
        until = f"{rest // timedelta(hours=1):02}:{rest % timedelta(hours=1) // timedelta(minutes=1):02}"
        begins = f"{format_days(days)} {int(hour):02}:{int(minute):02}"
        if len(days) == 1 and later < 7:
            ends = f"{DAY_NAMES[(min(days) + later) % 7]} " if later else ""
            return f"{begins} to {ends}{until}"
        next_day = " of the next day" if later == 1 else ""
        return f"{begins} to {until}{next_day}" if later <= 1 else ""


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
