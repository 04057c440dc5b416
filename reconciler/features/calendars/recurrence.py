"""Events that happen once or repeat by a rule of RFC 5545, expanded to runs in UTC.

A rule chooses days and times on the wall clock. They are converted to UTC one by one: a start that the
clocks skip moves forward, and a length in hours is elapsed time. A rule is looked at day by day in the time
that is asked for, so that one that never fires costs no more than any other.
"""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from itertools import count, product

from msgspec import Struct

from reconciler.calendar.occurrences import HORIZON, KEPT, Always, Run, Span, joined, subtract
from reconciler.calendar.values import to_utc
from reconciler.model.limits import count_of
from reconciler.model.values import replace

_DAY = timedelta(days=1)
_LOOK_BACK = timedelta(days=9)


class Frequency(StrEnum):
    """How often a rule repeats: the period in which its BY parts choose days."""

    YEARLY = "YEARLY"
    MONTHLY = "MONTHLY"
    WEEKLY = "WEEKLY"
    DAILY = "DAILY"


class Rule(Struct, frozen=True):
    """An RRULE. Each tuple is the list of a BY part, empty if the rule has none.

    `until` is the last start: aware for a moment, or naive for the wall clock. `days` are weekdays (Monday
    is 0) with their number in the month or year, 0 for each of them.
    """

    frequency: Frequency
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    week_start: int = 0
    months: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    weeks: tuple[int, ...] = ()
    days: tuple[tuple[int, int], ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    seconds: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()

    @property
    def starts_a_day(self) -> int:
        """How many times it starts on one day at most."""
        return max(len(self.hours), 1) * max(len(self.minutes), 1) * max(len(self.seconds), 1)

    def walls(self, start: datetime, edge: datetime, last: datetime, zone: tzinfo) -> Iterator[datetime]:
        """Yield the starts from `edge` to `last`, ascending; all of them are on the wall clock of `zone`.

        `start` is the DTSTART. No start is before it. A rule with a count is gone through from its start on.
        """
        # What says on which days or at which time it starts is taken from the DTSTART if the rule has none.
        months, month_days, days = self.months, self.month_days, self.days
        if not (self.weeks or self.year_days or month_days or days):
            if self.frequency is Frequency.YEARLY:
                months, month_days = months or (start.month,), (start.day,)
            elif self.frequency is Frequency.MONTHLY:
                month_days = (start.day,)
            elif self.frequency is Frequency.WEEKLY:
                days = ((start.weekday(), 0),)
        rule = replace(
            self,
            months=months,
            month_days=month_days,
            days=days,
            hours=self.hours or (start.hour,),
            minutes=self.minutes or (start.minute,),
            seconds=self.seconds or (start.second,),
        )
        begin = start if self.count is not None else max(start, edge)
        for number, wall in enumerate(rule._each(start, begin, last)):
            if (self.count is not None and number >= self.count) or self.is_over(wall, zone):
                return
            if edge <= wall:
                yield wall

    def is_over(self, wall: datetime, zone: tzinfo) -> bool:
        """Return whether a start on the wall clock of `zone` is after the last one."""
        if self.until is None:
            return False
        return self.until < (wall if self.until.tzinfo is None else to_utc(wall, zone))

    def _each(self, start: datetime, edge: datetime, last: datetime) -> Iterator[datetime]:
        """Yield each start of the periods from that of `edge` on, but none before `start` or after `last`."""
        times = [time(*parts) for parts in product(self.hours, self.minutes, self.seconds)]
        for first, end in self._periods(start.date(), edge.date()):
            if last.date() < first:
                return
            # A position counts from the ends of the period, so the period is needed as a whole.
            days = [first] if self.frequency is Frequency.DAILY else self._days(first, end)
            walls = [datetime.combine(day, clock) for day in days if self._chooses(day) for clock in times]
            if self.positions:
                chosen = {at - 1 if at > 0 else len(walls) + at for at in self.positions}
                walls = [walls[at] for at in sorted(chosen) if 0 <= at < len(walls)]
            for wall in walls:
                if last < wall:
                    return
                if start <= wall:
                    yield wall

    def _periods(self, start: date, edge: date) -> Iterator[tuple[date, date]]:
        """Yield [first day, end) of each period of the interval, from the one before `edge` on."""
        match self.frequency:
            case Frequency.YEARLY:
                years = (edge.year - start.year) // self.interval * self.interval
                for year in count(start.year + years, self.interval):
                    yield date(year, 1, 1), date(year + 1, 1, 1)
            case Frequency.MONTHLY:
                first = start.year * 12 + start.month - 1
                months = (edge.year * 12 + edge.month - 1 - first) // self.interval * self.interval
                for month in count(first + months, self.interval):
                    yield _month(month), _month(month + 1)
            case Frequency.WEEKLY:
                week = _week(start, self.week_start)
                length = 7 * self.interval * _DAY
                for number in count((_week(edge, self.week_start) - week) // length):
                    yield week + number * length, week + number * length + 7 * _DAY
            case Frequency.DAILY:
                for number in count((edge - start).days // self.interval):
                    day = start + number * self.interval * _DAY
                    yield day, day + _DAY

    def _days(self, first: date, end: date) -> Iterator[date]:
        """Yield the days of a period; those of other months are skipped at once."""
        if self.frequency is Frequency.YEARLY and self.months:
            for month in self.months:
                length = monthrange(first.year, month)[1]
                yield from (date(first.year, month, day) for day in range(1, length + 1))
            return
        yield from (first + timedelta(days=number) for number in range((end - first).days))

    def _chooses(self, day: date) -> bool:
        """Return whether the BY parts allow a day."""
        if self.months and day.month not in self.months:
            return False
        if self.days and not any(self._is_day(day, weekday, number) for weekday, number in self.days):
            return False
        if self.month_days and not _among(self.month_days, day.day, _days_of_month(day)):
            return False
        if self.year_days and not _among(self.year_days, day.timetuple().tm_yday, _days_of_year(day)):
            return False
        return not self.weeks or _among(self.weeks, *_week_number(day, self.week_start))

    def _is_day(self, day: date, weekday: int, number: int) -> bool:
        if day.weekday() != weekday:
            return False
        if not number:
            return True
        in_year = self.frequency is Frequency.YEARLY and not self.months
        at, most = (
            (day.timetuple().tm_yday, _days_of_year(day)) if in_year else (day.day, _days_of_month(day))
        )
        return number == (at - 1) // 7 + 1 or number == -((most - at) // 7 + 1)


def _among(numbers: tuple[int, ...], at: int, most: int) -> bool:
    """Return whether a list has a number, from the beginning or, negative, from the end."""
    return at in numbers or at - most - 1 in numbers


def _days_of_month(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _days_of_year(day: date) -> int:
    return 366 if isleap(day.year) else 365


def _month(number: int) -> date:
    return date(number // 12, number % 12 + 1, 1)


def _week(day: date, week_start: int) -> date:
    """Return the first day of a week."""
    return day - (day.weekday() - week_start) % 7 * _DAY


def _week_number(day: date, week_start: int) -> tuple[int, int]:
    """Return the number of a day's week, and how many weeks its year has. Week 1 has at least four days."""
    week = _week(day, week_start)
    year = (week + 3 * _DAY).year
    first, following = (_week(date(each, 1, 4), week_start) for each in (year, year + 1))
    return (week - first).days // 7 + 1, (following - first).days // 7


class Length(Struct, frozen=True):
    """How long an event lasts: first so much on the wall clock, then so much elapsed time.

    A day of the wall clock has 23 or 25 hours when the clocks change.
    """

    wall: timedelta = timedelta()
    elapsed: timedelta = timedelta()

    def end(self, start: datetime, zone: tzinfo) -> datetime:
        """Return the end in UTC of what starts at `start` on the wall clock of `zone`."""
        return to_utc(start + self.wall, zone) + self.elapsed


class Event(Struct, frozen=True):
    """An event with all of its instances. `start` is on the wall clock of `zone`, without an offset.

    `more` are further instances. An instance does not happen if its start (UTC) is in `without`, or its day
    on the wall clock is in `without_days`. `summary` is its name for people, empty if it has none.
    """

    start: datetime
    zone: tzinfo
    length: Length
    rules: tuple[Rule, ...] = ()
    more: tuple[Run, ...] = ()
    without: frozenset[datetime] = frozenset()
    without_days: frozenset[date] = frozenset()
    summary: str = ""

    def runs(self, edge: datetime, last: datetime) -> Iterator[Run]:
        """Yield each instance that ends after `edge` and starts before `last` (UTC), in any order."""
        # The first start counts even if the rule leaves it out, unless the rule has ended by then.
        over = self.rules and all(rule.is_over(self.start, self.zone) for rule in self.rules)
        walls = set() if over else {self.start}
        if self.rules:
            # The wall clock is at most a day away from UTC.
            from_wall = edge.replace(tzinfo=None) - self.length.wall - self.length.elapsed - 2 * _DAY
            to_wall = last.replace(tzinfo=None) + 2 * _DAY
            for rule in self.rules:
                walls.update(rule.walls(self.start, from_wall, to_wall, self.zone))
        if self.length.wall:
            found = [Run(to_utc(wall, self.zone), self.length.end(wall, self.zone)) for wall in walls]
        else:
            starts = (to_utc(wall, self.zone) for wall in walls)
            found = [Run(start, start + self.length.elapsed) for start in starts]
        for run in (*found, *self.more):
            if run.start in self.without or not (edge < run.end and run.start < min(last, run.end)):
                continue
            if self.without_days and run.start.astimezone(self.zone).date() in self.without_days:
                continue
            yield run


class CalendarTimes(Struct, frozen=True):
    """The time of the events of a calendar, without the time of the events `taken`.

    With `always`, it is all time without `taken`.
    """

    events: tuple[Event, ...] = ()
    taken: tuple[Event, ...] = ()
    always: bool = False

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the runs that end after `since`, and start less than two years and two months after it."""
        spans = Always().runs(since) if self.always else _joined(self.events, since)
        if not self.taken:
            yield from spans
            return
        for span in subtract(_spans(spans), _spans(_joined(self.taken, since))):
            if since < span.run.end:
                yield span.run

    def named(self, edge: datetime, last: datetime) -> Iterator[tuple[Run, str]]:
        """Yield the instances of events with a name, as `Named` says."""
        for event in self.events:
            if event.summary:
                yield from ((run, event.summary) for run in event.runs(edge, last))

    def __str__(self) -> str:
        """Return how many events it has."""
        return count_of(len(self.events) + len(self.taken), "event")


def _joined(events: Iterable[Event], since: datetime) -> Iterator[Run]:
    edge, last = since - _LOOK_BACK, since + KEPT + HORIZON + _DAY
    runs = sorted((run for event in events for run in event.runs(edge, last)), key=lambda run: run.start)
    yield from joined(iter(runs), edge, since)


def _spans(runs: Iterable[Run]) -> Iterator[Span]:
    return (Span(run) for run in runs)
