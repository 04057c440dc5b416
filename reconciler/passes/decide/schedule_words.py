"""What the schedule says of each case in words: why it starts when it does, and what would prevent a miss."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.model.moments import to_text
from reconciler.model.schedule import CaseSchedule
from reconciler.profiles.places_ahead import PlacesAhead
from reconciler.profiles.schedule import Case, Limits, Placed, Start

_NAMED_AT_MOST = 5


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
        for limit in limits.all:
            missed = [one.case for one in placed.values() if one.missed and one.limit == limit.name]
            for found in _shortages(limit, missed, now):
                self._shortages |= dict.fromkeys(found.missed, found)

    def need(self, placed: Placed) -> int:
        """Return the limit that would serve a missed case and all that compete with it; 0: unknown."""
        found = self._shortages.get(placed.case.node)
        return found.need if found is not None else 0

    def schedule(self, placed: Placed) -> CaseSchedule:
        """Return the schedule of one case."""
        case, start = placed.case, placed.start
        return CaseSchedule(
            planned_start=start.at if start is not None else None,
            latest_start=case.times.latest or case.times.deadline,
            window=start.window or None if start is not None else None,
            missed=placed.missed,
            because=self._missed(placed) if placed.missed else self._planned(case, start),
            ends=case.end(start.at) if start is not None else None,
            cause=_cause(placed, self._now),
            with_node=start.mate if start is not None else "",
            alone=start.alone if start is not None else None,
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
            return f"{case.times.never}: {case.times.remedy} would do{late}"
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
        has = f"{limit} has {places} {'place' if places == 1 else 'places'}"
        return (
            f"at {to_text(found.at)} {found.need} nodes have to be out of service, and {has}; {names} will "
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
    late, back = sorted(one.begin for one in booked), sorted(one.end for one in booked)

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
