"""`windows` and `notAllowed`: weekly, by cron, or from one moment to another. `passes`: when passes begin."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from itertools import chain, pairwise
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from reconciler.calendar.occurrences import Always, Cron, Once, Times, Weekly, check_schedule, firings
from reconciler.calendar.values import DAY_END, MIDNIGHT, TimeOfDay, format_moment, to_utc
from reconciler.model.selector import EVERYTHING
from reconciler.settings.fields import Days, Duration, Flag, Section, Selector, Text, TimeOrMoment, Zone
from reconciler.settings.mistakes import Mistake, Mistakes

_EVERY_DAY = frozenset(range(7))


def mistakes_in(section: TimesSection, *, may_be_always: bool) -> list[Mistake]:
    """Return the keys that don't fit together, as far as this needs no time zone."""
    if section.schedule is not None or section.duration is not None:
        return _mistakes_in_cron(section)
    if isinstance(section.start, datetime) or isinstance(section.end, datetime):
        return _mistakes_in_once(section)
    return _mistakes_in_weekly(section, may_be_always=may_be_always)


def _mistakes_in_cron(section: TimesSection) -> list[Mistake]:
    found = []
    if section.schedule is None:
        found.append(Mistake(("duration",), "needs a schedule; without a schedule, write start and end"))
    elif section.duration is None:
        found.append(Mistake(("schedule",), "needs a duration, like 4h"))
    elif not section.duration:
        found.append(Mistake(("duration",), "is 0, so it would never apply"))
    if section.schedule is not None:
        either = "write either schedule and duration, or days, start and end"
        others = (key for key in ("days", "start", "end") if getattr(section, key) is not None)
        found += [Mistake((key,), f"can't be combined with a schedule; {either}") for key in others]
        try:
            check_schedule(section.schedule)
        except ValueError as error:
            found.append(Mistake(("schedule",), str(error)))
    return found


def _mistakes_in_once(section: TimesSection) -> list[Mistake]:
    found = []
    if section.days is not None:
        found.append(
            Mistake(("days",), "can't be combined with a date; write either days with times, or two moments")
        )
    for key, other in (("start", "end"), ("end", "start")):
        value = getattr(section, key)
        if isinstance(value, TimeOfDay):
            found.append(
                Mistake((key,), f"has no date, but {other} has one; write it like 2026-11-26T{value}")
            )
        elif value is None:
            found.append(Mistake((other,), f"is a moment, so {key} must be a moment too"))
    if isinstance(section.start, datetime) and isinstance(section.end, datetime):
        # A moment without an offset can be compared only once the zone is known.
        same = (section.start.tzinfo is None) is (section.end.tzinfo is None)
        if same and section.end <= section.start:
            found.append(ends_too_early(section.start, section.end))
    return found


def ends_too_early(start: datetime, end: datetime) -> Mistake:
    """Return the mistake for an end that is not after its start."""
    hint = "; an end date excludes that day" if end == start else ""
    return Mistake(("end",), f"{format_moment(end)} is not after its start, {format_moment(start)}{hint}")


def _mistakes_in_weekly(section: TimesSection, *, may_be_always: bool) -> list[Mistake]:
    if section.days is None and section.start is None and section.end is None and not may_be_always:
        return [Mistake((), "has no times; write start and end, or days, or a schedule and a duration")]
    start, end = section.start or MIDNIGHT, section.end or DAY_END
    if start == DAY_END:
        return [Mistake(("start",), '24:00 can only be an end; a day starts at "00:00"')]
    if start == end:
        hint = 'for the whole day, write start: "00:00" and end: "24:00"'
        return [Mistake(("end",), f"{end} is also the start, so it would never apply; {hint}")]
    return []


def ends_before_it_starts(section: TimesSection, zone: tzinfo) -> Mistake | None:
    """Return the mistake if the end is not after the start, now that the zone is known; else None."""
    if not isinstance(section.start, datetime) or not isinstance(section.end, datetime):
        return None
    too_early = to_utc(section.end, zone) <= to_utc(section.start, zone)
    return ends_too_early(section.start, section.end) if too_early else None


def times_of(section: TimesSection, zone: tzinfo) -> Times:
    """Return the rule of checked settings. `zone` applies to times without a zone of their own."""
    if section.schedule is not None and section.duration is not None:
        return Cron(section.schedule, section.duration, zone)
    if isinstance(section.start, datetime) and isinstance(section.end, datetime):
        return Once(section.start, section.end, zone)
    if section.days is None and section.start is None and section.end is None:
        return Always()
    start = section.start if isinstance(section.start, TimeOfDay) else MIDNIGHT
    end = section.end if isinstance(section.end, TimeOfDay) else DAY_END
    return Weekly(section.days or _EVERY_DAY, start, end, zone)


class TimesSection(Section):
    """A period of time that repeats or happens once, for `windows` and `notAllowed`."""

    days: Days | None = Field(default=None, description="The days on which it starts. Default: every day.")
    start: TimeOrMoment | None = Field(
        default=None, description="A time of day, or a moment. Default: `00:00`."
    )
    end: TimeOrMoment | None = Field(
        default=None,
        description="The same, not included; up to 24:00. One before the start is on the next day. "
        "Default: `24:00`.",
    )
    schedule: str | None = Field(
        default=None,
        description="A cron schedule, or a macro such as `@daily`, instead. Sunday is 0 or 7, the first "
        "Saturday of a month `6#1`. Default: none.",
    )
    duration: Duration | None = Field(
        default=None, description="How long it lasts, with a schedule. Default: none."
    )
    node_selector: Selector = Field(default=EVERYTHING, description="Its nodes. Default: all.")
    time_zone: Zone | None = Field(
        default=None, description="The time zone of its times. Default: that of the file."
    )

    def title(self, zone: ZoneInfo) -> str:
        """Return its times as text. This is the name of an entry without one."""
        return str(times_of(self, self.time_zone or zone))


class WindowSettings(TimesSection):
    """When drains may start."""

    name: Text | None = Field(default=None, description="Its unique name. Default: its times.")

    @model_validator(mode="after")
    def _fits_together(self) -> WindowSettings:
        if found := mistakes_in(self, may_be_always=True):
            raise Mistakes(tuple(found))
        return self


class NotAllowedSettings(TimesSection):
    """When drains may not start."""

    name: Text | None = Field(default=None, description="Its unique name. Default: its times.")
    reason: str = Field(default="", description="Its reason. Default: none.")
    absolute: Flag = Field(
        default=False, description="Whether it also keeps drains from a start at their deadline."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> NotAllowedSettings:
        if found := mistakes_in(self, may_be_always=False):
            raise Mistakes(tuple(found))
        return self


_AHEAD = timedelta(days=8)
"""How far ahead the longest time between two passes is looked for: each day of the week is in it."""

_SAME = timedelta(seconds=1)
"""A pass that begins so long before a time of its schedule is the pass for that time."""


class PassTimes(Section):
    """When `serve` makes a pass although nothing has changed."""

    every: Duration | None = Field(
        default=None, description="The longest time between two passes. Default: that of `--every`."
    )
    cron: str | None = Field(
        default=None,
        description="A cron schedule, or a macro such as `@hourly`, instead: a pass begins at these times, "
        "in the `timeZone` of the file. Default: none.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> PassTimes:
        mistakes = []
        if self.every == timedelta():
            mistakes.append(Mistake(("every",), "is 0; write a longer time, like 1m"))
        if self.cron is not None:
            if self.every is not None:
                mistakes.append(Mistake(("cron",), "can't be combined with every; write one of the two"))
            try:
                check_schedule(self.cron)
            except ValueError as error:
                mistakes.append(Mistake(("cron",), str(error)))
        if mistakes:
            raise Mistakes(tuple(mistakes))
        return self

    def apart(self, now: datetime, zone: tzinfo) -> timedelta | None:
        """Return the longest time between two passes from `now` (aware) on, None if that is not set.

        `zone` is that of the cron schedule.
        """
        if self.cron is None:
            return self.every
        longest = timedelta()
        for before, firing in pairwise(chain((now,), firings(self.cron, now, zone))):
            longest = max(longest, firing - before)
            if before > now + _AHEAD:
                break
        return longest

    def next_after(self, began: datetime, zone: tzinfo) -> datetime | None:
        """Return the first time of the cron schedule after a pass that `began` then, None without one."""
        return next(firings(self.cron, began + _SAME, zone), None) if self.cron is not None else None
