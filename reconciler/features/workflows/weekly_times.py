"""Weekly times of the checks `timeWindow` and `waitExclude`, as moments in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

from reconciler.calendar.occurrences import Run, joined
from reconciler.calendar.values import MIDNIGHT
from reconciler.settings.sections.check_types import TimeWindowCheck

_AHEAD = 820
"""Days to look ahead: a date of one weekday that is excluded every year comes again within two years."""

_DAY = timedelta(days=1)


def openings(window: TimeWindowCheck, now: datetime) -> Iterator[Run]:
    """Yield when the window is open, from the run that ends after `now` on; runs that touch are one."""
    edge = now - timedelta(days=9)
    return joined(_each(window, edge), edge, now)


def _each(window: TimeWindowCheck, edge: datetime) -> Iterator[Run]:
    zone = window.time_zone
    first = edge.astimezone(zone).date() - _DAY
    overnight = window.end < window.start
    for step in range(_AHEAD):
        day = first + step * _DAY
        if day.weekday() not in window.weekdays or any(one.covers(day) for one in window.exclude):
            continue
        end = window.end.on(day, zone)
        if overnight:
            next_day = day + _DAY
            cut = any(one.covers(next_day) for one in window.exclude)
            end = MIDNIGHT.on(next_day, zone) if cut else window.end.on(next_day, zone)
        run = Run(window.start.on(day, zone), end)
        if run.start < run.end:
            yield run


@lru_cache(maxsize=64)
def opening(window: TimeWindowCheck, now: datetime) -> Run | None:
    """Return the run that is open at `now`, or the next one; None if there is none within two years."""
    return next(openings(window, now), None)


@lru_cache(maxsize=4096)
def reached(began: datetime, duration: timedelta, excluded: frozenset[int], zone: tzinfo) -> datetime | None:
    """Return the last moment at which no more than `duration` has passed since `began`, in UTC.

    No time passes on the excluded weekdays (Monday 0) of the zone. None: it is never reached.
    """
    if len(excluded) == 7:
        return None
    moment, left = began, duration
    while True:
        day = moment.astimezone(zone).date()
        midnight = MIDNIGHT.on(day + _DAY, zone)
        if day.weekday() not in excluded:
            if left < midnight - moment:
                return moment + left
            left -= midnight - moment
        moment = midnight
