"""When a forecast changes although nothing happens: a case that is planned for now is held, and moves on.

A start that is planned for now, and is held by something that the schedule does not know, is planned for now
again a minute later. What follows from it moves as well: the end of its place, and the starts that wait for
that. The end of a place that somebody else holds moves, too. All of them move as fast as the clock, so the
forecast stays the same until one of them meets a moment that does not move, such as another planned start, or
the last moment of a start in time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from reconciler.calendar.occurrences import FOREVER
from reconciler.model.moments import shifted
from reconciler.profiles.schedule import Case, Limits, Placed


def forecast_until(limits: Limits, placed: Mapping[str, Placed], now: datetime) -> datetime | None:
    """Return until when the forecast stays the same if the cases that are planned for now do not start.

    The reason of a miss may also change with the calendar. `now` and the result are UTC. None: nothing of
    that lies ahead. The moment may come too early, because a meeting does not always change the forecast.
    """
    moving = _moving(limits, placed, now)
    still, dates = sorted(_of_bookings(limits, placed, moving)), sorted(_of_cases(placed))
    gaps = [_gap(still, bisect_right(still, at), at) for moments in moving.values() for at in moments]
    # What is in time at a date is late right after it.
    gaps += [_gap(dates, bisect_left(dates, at), at) for moments in moving.values() for at in moments]
    # What holds until a moment still holds at that moment, but a window ends before its end.
    found = [gap + timedelta.resolution for gap in gaps if gap is not None]
    starts = [(placed[name].case, start) for name, (start, *_) in moving.items() if name in placed]
    missed = [(one.case, now) for one in placed.values() if one.missed]
    found += [gap for case, at in (*starts, *missed) if (gap := _to_calendar(case, at)) is not None]
    return shifted(now, min(found)) if found else None


def _moving(
    limits: Limits, placed: Mapping[str, Placed], now: datetime
) -> Mapping[str, tuple[datetime, ...]]:
    """Return the moments that move with the clock, by node: the start of a case, then what follows from it.

    Of a node that somebody else holds, it is the end of that.
    """
    waiting: dict[datetime, list[str]] = {}
    for name, one in placed.items():
        if one.start is not None:
            waiting.setdefault(one.start.at, []).append(name)
    held = (one for limit in limits.all for one in limit.bookings.values() if one.moves)
    moving: dict[str, tuple[datetime, ...]] = {one.node: (one.end,) for one in held}
    seeds = (now, *(end for (end,) in moving.values()))
    reached = [*seeds, *(at for at in waiting if _is_spaced(at, seeds, limits.spacing))]
    while reached:
        at = reached.pop()
        for name in waiting.pop(at, ()):
            follows = tuple(_follows(placed[name], at, limits.spacing))
            moving[name] = (at, *follows)
            reached += follows
    return moving


def _follows(placed: Placed, start: datetime, spacing: timedelta) -> Iterator[datetime]:
    if _ends_later(placed.case, start):
        yield placed.case.end(start)
    if placed.spaced and spacing > timedelta():
        yield shifted(start, spacing)


def _is_spaced(moment: datetime, seeds: tuple[datetime, ...], spacing: timedelta) -> bool:
    """Whether a moment follows from a moving one although no start may be in between.

    A case that gave way to another one leaves a gap: the starts that were spaced from its start stay.
    """
    if spacing <= timedelta():
        return False
    return any(moment > seed and (moment - seed) % spacing == timedelta() for seed in seeds)


def _ends_later(case: Case, start: datetime) -> bool:
    """Whether a later start has a later end."""
    return case.back is None or case.back <= start


def _of_bookings(
    limits: Limits, placed: Mapping[str, Placed], moving: Mapping[str, tuple[datetime, ...]]
) -> Iterator[datetime]:
    for limit in limits.all:
        for name, booking in limit.bookings.items():
            one = placed.get(name)
            # A node that is out of service already holds its place from now on.
            if name not in moving and not (one is not None and one.case.has_place):
                yield booking.begin
            if name not in moving or booking.end not in moving[name]:
                yield booking.end


def _of_cases(placed: Mapping[str, Placed]) -> Iterator[datetime]:
    for one in placed.values():
        case = one.case
        dates = (case.times.deadline, case.in_time_until, case.too_late_from, case.exempt_from, case.date)
        yield from (date for date in dates if date is not None)


def _gap(still: list[datetime], index: int, moment: datetime) -> timedelta | None:
    """Return how long it takes until a moving moment meets the one at `index` that does not move."""
    return still[index] - moment if index < len(still) and still[index] < FOREVER else None


def _to_calendar(case: Case, start: datetime) -> timedelta | None:
    """Return how long it takes until a moving start meets the next change of its calendar."""
    found = case.outlook.first_open(start)
    if found is None:
        return None
    edge = found[1].until if found[0] <= start else found[0]
    return edge - start if edge < FOREVER else None
