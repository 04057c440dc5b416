"""`windows` and `notAllowed`: when drains may start, and when not."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from reconciler.model.selector import EVERYTHING
from reconciler.settings.mistakes import Mistakes
from reconciler.settings.sections.fields import Days, Duration, Flag, Selector, Text, TimeOrMoment, Zone
from reconciler.settings.sections.section import Section
from reconciler.settings.times import mistakes_in, times_of


class TimesSection(Section):
    """When, for windows and for what is not allowed."""

    days: Days | None = Field(
        default=None,
        description="The days on which it starts, as names or ranges: `[Mon-Thu, sat]`. Default: every day.",
    )
    start: TimeOrMoment | None = Field(
        default=None, description="A time of day, or a moment (a date, or date and time). Default: 00:00."
    )
    end: TimeOrMoment | None = Field(
        default=None,
        description="A time of day up to 24:00 (earlier than the start: on the next day), or a moment, where "
        "a date excludes that day. Itself outside. Default: 24:00.",
    )
    schedule: str | None = Field(
        default=None,
        description="Instead of days, start and end: a cron schedule of five fields; Sunday is 0 or 7, the "
        "first Saturday of a month `6#1`; also @daily and its like. Default: none.",
    )
    duration: Duration | None = Field(
        default=None, description="With a schedule: how long it lasts from each firing on. Default: none."
    )
    node_selector: Selector = Field(default=EVERYTHING, description="Which nodes it is for. Default: all.")
    time_zone: Zone | None = Field(
        default=None, description="The IANA time zone in which it is meant. Default: the file's `timeZone`."
    )

    def title(self, zone: ZoneInfo) -> str:
        """Return its times in words: the name of what was given none."""
        return str(times_of(self, self.time_zone or zone))


class WindowSettings(TimesSection):
    """When drains may start."""

    name: Text | None = Field(
        default=None,
        description="What reports call it; no two windows share one. Default: its times in words.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> WindowSettings:
        if found := mistakes_in(self, may_be_always=True):
            raise Mistakes(tuple(found))
        return self


class NotAllowedSettings(TimesSection):
    """When drains may not start."""

    name: Text | None = Field(
        default=None,
        description="What reports call it; no two entries share one. Default: its times in words.",
    )
    reason: str = Field(default="", description="Why, for whoever reads the report. Default: none.")
    absolute: Flag = Field(
        default=False, description="Whether not even a deadline may beat it. Default: false, a deadline does."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> NotAllowedSettings:
        if found := mistakes_in(self, may_be_always=False):
            raise Mistakes(tuple(found))
        return self
