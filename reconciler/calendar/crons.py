"""Cron schedules. cronsim parses them and handles days with a clock change; this module handles other days.

`* * * * *` fires every minute, but the clocks change twice a year. The firings of a day are the same on
every other day, so they are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from reconciler.calendar.values import MIDNIGHT

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
        raise ValueError(f"{schedule!r} is not a cron schedule: {str(error).lower()}") from error


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
    pattern = _joined_in_a_day(sim, duration)
    day = since.astimezone(zone).date() - _DAY
    midnight = MIDNIGHT.on(day, zone)
    for _ in range(_LAST_LOOK):
        tomorrow = MIDNIGHT.on(day + _DAY, zone)
        if day.month not in sim.months or not sim.match_day(day):
            pass
        elif tomorrow - midnight == _DAY:
            for start, end in pattern:
                yield midnight + start, midnight + end
        else:
            for firing in firings(schedule, midnight - timedelta(seconds=1), zone):
                if firing.date() > day:
                    break
                yield firing.astimezone(UTC), firing.astimezone(UTC) + duration
        day, midnight = day + _DAY, tomorrow


def _joined_in_a_day(sim: CronSim, duration: timedelta) -> list[tuple[timedelta, timedelta]]:
    """Return the stretches of a day without a clock change, relative to midnight."""
    # `hours`, `minutes`, `months` and `match_day` have no underscore, but are not documented. The documented
    # interface is an iterator, which takes one step per firing.
    pattern: list[tuple[timedelta, timedelta]] = []
    for hour in sorted(sim.hours):
        for minute in sorted(sim.minutes):
            start = timedelta(hours=hour, minutes=minute)
            if pattern and start <= pattern[-1][1]:
                pattern[-1] = (pattern[-1][0], start + duration)
            else:
                pattern.append((start, start + duration))
    return pattern
