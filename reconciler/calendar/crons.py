"""Cron schedules: cronsim reads them and knows the nights in which the clocks change; plain days are ours.

Between firings of `* * * * *` lies a minute, between changes of the clocks half a year: a day's firings are
the same on every plain day, and are worked out once.
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

# Any start does to see whether a schedule fires: cronsim looks fifty years ahead, past many a 29 February.
_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_LAST_LOOK = 366 * 60


def firings(schedule: str, after: datetime, zone: tzinfo) -> CronSim:
    """Return an iterator over the moments at which a schedule fires, ascending, each after `after`.

    Debian's rules for the clocks' changes: a time of day that is skipped fires right after the gap, one
    that comes twice fires once. Raises ValueError in words for what is no schedule.
    """
    from cronsim import CronSim, CronSimError  # only files with a cron window pay for it

    text = _MACROS.get(schedule.strip().lower(), schedule)
    if text.startswith("@"):
        raise ValueError(f"{schedule!r} is not a macro of cron; there are {', '.join(_MACROS)}")
    if len(text.split()) != 5:
        raise ValueError(f"{schedule!r} is not a cron schedule: five fields, like 0 2 * * 6#1")
    # cronsim knows UTC, where no clock changes, by this object only.
    start = after.astimezone(UTC if getattr(zone, "key", "") == "UTC" else zone)
    try:
        return CronSim(text, start)
    except (CronSimError, AssertionError, ValueError) as error:
        raise ValueError(f"{schedule!r} is not a cron schedule: {str(error).lower()}") from error


def check_schedule(schedule: str) -> None:
    """Raise ValueError, in words, for what is no cron schedule or never fires."""
    if next(firings(schedule, _SOME_DAY, UTC), None) is None:
        raise ValueError(f"{schedule!r} never fires")


def stretches(
    schedule: str, duration: timedelta, since: datetime, zone: tzinfo
) -> Iterator[tuple[datetime, datetime]]:
    """Yield [start, end) in UTC of what each firing begins, by start, from the day before `since` on.

    On a plain day, what overlaps or touches is joined already.
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
    """Return a plain day's stretches, counted from its midnight."""
    # `hours`, `minutes`, `months` and `match_day` are attributes without an underscore, but not documented:
    # what it documents is an iterator, which would take a step for each firing.
    pattern: list[tuple[timedelta, timedelta]] = []
    for hour in sorted(sim.hours):
        for minute in sorted(sim.minutes):
            start = timedelta(hours=hour, minutes=minute)
            if pattern and start <= pattern[-1][1]:
                pattern[-1] = (pattern[-1][0], start + duration)
            else:
                pattern.append((start, start + duration))
    return pattern
