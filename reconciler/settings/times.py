"""The three forms of windows and freezes: weekly, by cron, or from one moment to another."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Protocol

from reconciler.calendar.crons import check_schedule
from reconciler.calendar.occurrences import Always, Cron, Once, Times, Weekly
from reconciler.calendar.values import DAY_END, MIDNIGHT, TimeOfDay, format_moment, to_utc
from reconciler.settings.mistakes import Mistake

_EVERY_DAY = frozenset(range(7))


class Said(Protocol):
    """The settings of a window or a freeze."""

    @property
    def days(self) -> frozenset[int] | None: ...
    @property
    def start(self) -> TimeOfDay | datetime | None: ...
    @property
    def end(self) -> TimeOfDay | datetime | None: ...
    @property
    def schedule(self) -> str | None: ...
    @property
    def duration(self) -> timedelta | None: ...


def mistakes_in(said: Said, *, may_be_always: bool) -> list[Mistake]:
    """Return the keys that don't fit together, as far as this needs no time zone."""
    if said.schedule is not None or said.duration is not None:
        return _mistakes_in_cron(said)
    if isinstance(said.start, datetime) or isinstance(said.end, datetime):
        return _mistakes_in_once(said)
    return _mistakes_in_weekly(said, may_be_always=may_be_always)


def _mistakes_in_cron(said: Said) -> list[Mistake]:
    found = []
    if said.schedule is None:
        found.append(Mistake(("duration",), "needs a schedule; without a schedule, write start and end"))
    elif said.duration is None:
        found.append(Mistake(("schedule",), "needs a duration, like 4h"))
    elif not said.duration:
        found.append(Mistake(("duration",), "is 0, so it would never apply"))
    if said.schedule is not None:
        either = "write either schedule and duration, or days, start and end"
        others = (key for key in ("days", "start", "end") if getattr(said, key) is not None)
        found += [Mistake((key,), f"can't be combined with a schedule; {either}") for key in others]
        try:
            check_schedule(said.schedule)
        except ValueError as error:
            found.append(Mistake(("schedule",), str(error)))
    return found


def _mistakes_in_once(said: Said) -> list[Mistake]:
    found = []
    if said.days is not None:
        found.append(
            Mistake(("days",), "can't be combined with a date; write either days with times, or two moments")
        )
    for key, other in (("start", "end"), ("end", "start")):
        value = getattr(said, key)
        if isinstance(value, TimeOfDay):
            found.append(
                Mistake((key,), f"has no date, but {other} has one; write it like 2026-11-26T{value}")
            )
        elif value is None:
            found.append(Mistake((other,), f"is a moment, so {key} must be a moment too"))
    if isinstance(said.start, datetime) and isinstance(said.end, datetime):
        # A moment without an offset can be compared only once the zone is known.
        same = (said.start.tzinfo is None) is (said.end.tzinfo is None)
        if same and said.end <= said.start:
            found.append(ends_too_early(said.start, said.end))
    return found


def ends_too_early(start: datetime, end: datetime) -> Mistake:
    """Return the mistake for an end that is not after its start."""
    hint = "; an end date excludes that day" if end == start else ""
    return Mistake(("end",), f"{format_moment(end)} is not after its start, {format_moment(start)}{hint}")


def _mistakes_in_weekly(said: Said, *, may_be_always: bool) -> list[Mistake]:
    if said.days is None and said.start is None and said.end is None and not may_be_always:
        return [Mistake((), "has no times; write start and end, or days, or a schedule and a duration")]
    start, end = said.start or MIDNIGHT, said.end or DAY_END
    if start == DAY_END:
        return [Mistake(("start",), '24:00 can only be an end; a day starts at "00:00"')]
    if start == end:
        hint = 'for the whole day, write start: "00:00" and end: "24:00"'
        return [Mistake(("end",), f"{end} is also the start, so it would never apply; {hint}")]
    return []


def ends_before_it_starts(said: Said, zone: tzinfo) -> Mistake | None:
    """Return the mistake if the end is not after the start, now that the zone is known; else None."""
    if not isinstance(said.start, datetime) or not isinstance(said.end, datetime):
        return None
    too_early = to_utc(said.end, zone) <= to_utc(said.start, zone)
    return ends_too_early(said.start, said.end) if too_early else None


def times_of(said: Said, zone: tzinfo) -> Times:
    """Return the rule of checked settings. `zone` applies to times without a zone of their own."""
    if said.schedule is not None and said.duration is not None:
        return Cron(said.schedule, said.duration, zone)
    if isinstance(said.start, datetime) and isinstance(said.end, datetime):
        return Once(said.start, said.end, zone)
    if said.days is None and said.start is None and said.end is None:
        return Always()
    start = said.start if isinstance(said.start, TimeOfDay) else MIDNIGHT
    end = said.end if isinstance(said.end, TimeOfDay) else DAY_END
    return Weekly(said.days or _EVERY_DAY, start, end, zone)
