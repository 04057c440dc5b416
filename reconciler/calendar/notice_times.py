"""When a notice is sent: at a change and again after an interval, on weekdays, or once after a delay.

All who send notices use the same three schedules. Days are compared as dates, where maintenance-controller
compares only the day of the month: a notice of the first of a month is sent although the last one was sent on
the first of another month.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from msgspec import Struct

from reconciler.calendar.values import TimeOfDay, format_days, format_duration
from reconciler.model.moments import shifted
from reconciler.model.values import replace

EVERY_DAY = frozenset(range(7))
_WEEK = 9
"""Days after which each weekday has come, today and a day without this time of day included."""


class Periodic(Struct, frozen=True):
    """At each change of the state, and again after each interval while the state is not at rest."""

    every: timedelta

    def __str__(self) -> str:
        """Return it in words."""
        return f"every {format_duration(self.every)}"


class Weekly(Struct, frozen=True):
    """Once on each of these weekdays (Monday is 0), from a time of day on, in `zone`."""

    time: TimeOfDay
    days: frozenset[int] = EVERY_DAY
    zone: tzinfo = UTC

    def __str__(self) -> str:
        """Return it in words."""
        return f"{format_days(self.days)} at {self.time}"

    def due_on(self, moment: datetime) -> datetime | None:
        """Return when a notice is due on the local day of this moment (UTC), None if that day has none."""
        day = moment.astimezone(self.zone).date()
        return self.time.on(day, self.zone) if day.weekday() in self.days else None

    def first_from(self, moment: datetime) -> datetime:
        """Return the first of these times at this moment (aware) or after it, in UTC."""
        for ahead in range(_WEEK):
            found = self.due_on(shifted(moment, timedelta(days=ahead)))
            if found is not None and found >= moment:
                return found
        raise ValueError("a schedule without weekdays")


class Once(Struct, frozen=True):
    """Once, this long after the state changed."""

    delay: timedelta

    def __str__(self) -> str:
        """Return it in words."""
        return f"once, {format_duration(self.delay)} later"


Schedule = Periodic | Weekly | Once


class Past(Struct, frozen=True):
    """What came before: the last notice, and the last change of the state; each None if there was none (UTC).

    `at_rest` is whether the state is the ordinary one, of which nobody has to be reminded.
    """

    last: datetime | None = None
    changed: datetime | None = None
    at_rest: bool = False

    @property
    def has_news(self) -> bool:
        """Whether the state changed after the last notice."""
        return self.changed is not None and (self.last is None or self.last < self.changed)


def due(schedule: Schedule, now: datetime, past: Past) -> bool:
    """Return whether a notice is due `now` (aware)."""
    moment = next_due(schedule, now, past)
    return moment is not None and moment <= now


def next_due(schedule: Schedule, now: datetime, past: Past) -> datetime | None:
    """Return when the next notice is due if nothing changes (UTC): in the past if it is due, None for never.

    `now` is aware. A last notice in the future does not count: a clock was ahead.
    """
    if past.last is not None and past.last > now:
        past = replace(past, last=None)
    match schedule:
        case Periodic(every):
            if past.has_news:
                return past.changed
            if past.at_rest:
                return None
            return now if past.last is None else shifted(past.last, every)
        case Once(delay):
            return shifted(past.changed, delay) if past.changed is not None and past.has_news else None
        case Weekly(zone=zone):
            last = past.last.astimezone(zone).date() if past.last is not None else None
            for ahead in range(_WEEK):
                moment = schedule.due_on(shifted(now, timedelta(days=ahead)))
                # Two notices of a day would be one too many, whenever the first one was sent.
                if moment is not None and moment.astimezone(zone).date() != last:
                    return moment
            return None
