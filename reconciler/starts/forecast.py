"""What the schedule says of each case in words, why it is missed, and until when the forecast holds.

A start that is planned for now, and is held by something that the schedule does not know, is planned for now
again a minute later. What follows from it moves as well: the end of its place, and the starts that wait for
that. All of them move as fast as the clock, so the forecast stays the same until one of them meets a moment
that does not move, such as another planned start, or the last moment of a start in time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.calendar.occurrences import FOREVER
from reconciler.calendar.values import format_duration
from reconciler.model.limits import count_of
from reconciler.model.moments import shifted, to_text
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.starts.budget import PlacesAhead
from reconciler.starts.schedule import Case, Limits, Placed, Scheduler, Start

_NAMED_AT_MOST = 5


def plan_starts(limits: Limits, cases: Iterable[Case], now: datetime) -> Mapping[str, CaseSchedule]:
    """Return the schedule of each case, by node: its start, or why it is missed. `now` is UTC.

    `limits` have the bookings of the nodes that are out of service.
    """
    placed = Scheduler(limits, now).run(cases)
    reasons, until = Reasons(limits, placed, now), forecast_until(limits, placed, now)
    return {name: replace(reasons.schedule(place), forecast_until=until) for name, place in placed.items()}


class _Shortage(Struct, frozen=True):
    """Cases that one limit can't serve together: how many places they need, and when.

    `need` is the smallest limit that would serve them all, from `since` on.
    """

    need: int
    since: datetime
    at: datetime
    missed: tuple[str, ...]


class Reasons:
    """The reasons of one schedule. `now` is UTC."""

    def __init__(self, limits: Limits, placed: Mapping[str, Placed], now: datetime) -> None:
        """Find the shortages of every limit."""
        self._limits = limits
        self._now = now
        self._shortages: dict[str, _Shortage] = {}
        missed: dict[str, list[Case]] = {}
        for one in placed.values():
            if one.missed:
                missed.setdefault(one.limit, []).append(one.case)
        for limit in limits.all:
            for found in _shortages(limit, missed.get(limit.name, ()), now):
                self._shortages |= dict.fromkeys(found.missed, found)

    def need(self, placed: Placed) -> int:
        """Return the limit that would serve a missed case and all that compete with it; 0: unknown."""
        found = self._shortages.get(placed.case.node)
        return found.need if found is not None else 0

    def schedule(self, placed: Placed) -> CaseSchedule:
        """Return the schedule of one case."""
        case, start = placed.case, placed.start
        latest = case.times.latest or case.times.deadline
        if start is not None and latest is not None and latest < start.at and not placed.missed:
            # Without a start in the last window it starts at the deadline, if the policy allows that; a short
            # notice has no time until either. What the platform may have started has no latest start.
            date = case.outage.date
            over = case.outage.struck or (date is not None and date <= self._now)
            latest = None if over else date if case.short else case.times.deadline
        return CaseSchedule(
            planned_start=start.at if start is not None else None,
            latest_start=latest,
            window=start.window or None if start is not None else None,
            missed=placed.missed,
            because=self._missed(placed) if placed.missed else self._planned(case, start),
            ends=case.end(start.at) if start is not None and case.knows_end else None,
            ending=case.ending,
            cause=_cause(placed, self._now),
            with_node=start.mate if start is not None else "",
            alone=start.alone if start is not None else None,
            comes_back=not case.kind.takes_the_vm,
        )

    def _planned(self, case: Case, start: Start | None) -> str:
        if case.times.kept and (start is None or start.at == case.times.earliest):
            return case.times.kept
        if start is None:
            return "windows, freezes or the budget allow no start within 400 days"
        latest = case.times.latest
        if start.mate:
            return f"together with {start.mate}, because both run pods of {start.group}"
        if start.waits == "place":
            return "no place of the budget is free before"
        if start.waits == "spacing":
            return f"budget.spacing is {format_duration(self._limits.spacing)}"
        if latest is None:
            return "it has no date, so it starts as soon as windows and budget allow"
        if start.at >= latest:
            return "it is the latest start"
        if start.waits == "window" and start.window:
            return f"{start.window} opens then"
        if start.at <= self._now and case.times.earliest < self._now:
            return "windows and budget allow it now"
        return f"{format_duration(_whole(latest - start.at))} before its latest start"

    def _missed(self, placed: Placed) -> str:
        case = placed.case
        late = ""
        if case.kept_too_long(self._now):
            starts = f"; it starts late, at {to_text(placed.start.at)}" if placed.start is not None else ""
            return f"{case.times.kept}{starts}"
        if placed.start is not None:
            late = f"; it starts late, at {to_text(placed.start.at)}"
        found = self._shortages.get(case.node)
        if found is not None:
            return f"{self._short(found, placed.limit)}{late}"
        deadline = case.times.deadline
        if case.times.never:
            return f"{case.times.never}: {case.times.remedy}{late}"
        when = f"before {to_text(deadline)}" if deadline is not None else "in time"
        if self._limits.spacing > timedelta():
            spacing = format_duration(self._limits.spacing)
            return f"budget.spacing ({spacing}) leaves no start {when}: a shorter one would do{late}"
        return f"{'it was announced too late' if case.short else 'its latest start has passed'}{late}"

    def _short(self, found: _Shortage, limit: str) -> str:
        names = ", ".join(found.missed[:_NAMED_AT_MOST])
        more = len(found.missed) - _NAMED_AT_MOST
        names = f"{names} and {more} more" if more > 0 else names
        places = self._places(limit)
        key = limit.partition(" ")[0]
        has = f"{limit} has {count_of(places, 'place')}"
        return (
            f"at {to_text(found.at)} {count_of(found.need, 'node', 'have')} to be out of service, and "
            f"{has}; {names} will "
            f"not be drained in time: {key} of {found.need} from {to_text(found.since)} on would do"
        )

    def _places(self, name: str) -> int:
        return next(limit.places for limit in self._limits.all if limit.name == name)


def _cause(placed: Placed, now: datetime) -> str:
    """Return what a miss comes from, the same text as long as the reason is the same."""
    if not placed.missed:
        return ""
    case = placed.case
    what = "person" if case.kept_too_long(now) else placed.limit
    what = what or ("calendar" if case.times.never else "late")
    return f"{what} {to_text(case.times.deadline)}" if case.times.deadline is not None else what


def _shortages(limit: PlacesAhead, missed: Sequence[Case], now: datetime) -> list[_Shortage]:
    """Return the shortages of a limit. Cases that need a place at the same time belong together."""
    at_deadline = ((max(case.times.deadline or now, now), case) for case in missed)
    wanted = sorted(at_deadline, key=lambda pair: (pair[0], pair[1].node))
    groups: list[list[tuple[datetime, Case]]] = []
    last: datetime | None = None
    for at, case in wanted:
        if last is None or at >= last:
            groups.append([])
            last = None
        groups[-1].append((at, case))
        end = case.end(at)
        last = end if last is None else max(last, end)
    return [_shortage(limit, group) for group in groups]


def _shortage(limit: PlacesAhead, group: Sequence[tuple[datetime, Case]]) -> _Shortage:
    begins = [at for at, _ in group]
    ends = sorted(case.end(at) for at, case in group)
    names = {case.node for _, case in group}
    # Late starts of these cases, and nodes that the platform takes down, are booked already.
    booked = [limit.bookings[name] for name in names if name in limit.bookings]
    late, back = sorted(booking.begin for booking in booked), sorted(booking.end for booking in booked)

    def need(at: datetime) -> int:
        wanted = bisect_right(begins, at) - bisect_right(ends, at)
        counted = bisect_right(late, at) - bisect_right(back, at)
        return limit.held(at) + wanted - counted

    # Cases in time that start while one of these would hold its place need theirs, too.
    others = (limit.bookings[name].begin for name in limit.planned_between(begins[0], ends[-1]))
    moments = (*begins, *(at for at in others if begins[0] <= at < ends[-1]))
    worst = max(moments, key=need)
    return _Shortage(need(worst), begins[0], worst, tuple(sorted(names)))


def _whole(length: timedelta) -> timedelta:
    return timedelta(seconds=round(length.total_seconds()))


def forecast_until(limits: Limits, placed: Mapping[str, Placed], now: datetime) -> datetime | None:
    """Return until when the forecast stays the same if the cases that are planned for now do not start.

    The reason of a miss may also change with the calendar. `now` and the result are UTC. None: nothing of
    that lies ahead. The moment may come too early, because a meeting does not always change the forecast.
    """
    moving = _moving(limits, placed, now)
    # The moments that do not move: those at which places are taken and given back, and the dates of cases.
    still: list[datetime] = []
    for limit in limits.all:
        for name, booking in limit.bookings.items():
            holder = placed.get(name)
            # A node that is out of service already holds its place from now on.
            if name not in moving and not (holder is not None and holder.case.has_place):
                still.append(booking.begin)
            if name not in moving or booking.end not in moving[name]:
                still.append(booking.end)
    still.sort()
    dates = sorted(
        date
        for case in [holder.case for holder in placed.values()]
        for date in (
            case.times.deadline,
            case.in_time_until,
            case.late_from,
            case.outage.too_late_from,
            case.exempt.places,
            case.exempt.spacing,
            case.outage.date,
        )
        if date is not None
    )
    gaps = [_gap(still, bisect_right(still, at), at) for moments in moving.values() for at in moments]
    # What is in time at a date is late right after it.
    gaps += [_gap(dates, bisect_left(dates, at), at) for moments in moving.values() for at in moments]
    # What holds until a moment still holds at that moment, but a window ends before its end.
    found = [gap + timedelta.resolution for gap in gaps if gap is not None]
    starts = [(placed[name].case, start) for name, (start, *_) in moving.items() if name in placed]
    missed = [(one.case, now) for one in placed.values() if one.missed]
    found += [gap for case, at in (*starts, *missed) if (gap := _to_calendar(case, at)) is not None]
    found += [limits.changes_at - now] if limits.changes_at is not None else []
    return shifted(now, min(found)) if found else None


def _moving(
    limits: Limits, placed: Mapping[str, Placed], now: datetime
) -> Mapping[str, tuple[datetime, ...]]:
    """Return the moments that move with the clock, by node: the start of a case, and what follows from it."""
    waiting: dict[datetime, list[str]] = {}
    for name, case in placed.items():
        if case.start is not None:
            waiting.setdefault(case.start.at, []).append(name)
    moving: dict[str, tuple[datetime, ...]] = {}
    reached = [now]
    if limits.spacing > timedelta():
        # A case that gave way to another one leaves a gap: the starts that were spaced from its start stay.
        reached += [at for at in waiting if at > now and (at - now) % limits.spacing == timedelta()]
    while reached:
        at = reached.pop()
        for name in waiting.pop(at, ()):
            follows = tuple(_follows(placed[name], at, limits.spacing))
            moving[name] = (at, *follows)
            reached += follows
    return moving


def _follows(placed: Placed, start: datetime, spacing: timedelta) -> Iterator[datetime]:
    back = placed.case.outage.back
    if back is None or back <= start:
        # No known date ends it, so its end moves with its start.
        yield placed.case.end(start)
    if placed.spaced and spacing > timedelta():
        yield shifted(start, spacing)


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
