"""`windows` and `notAllowed`: when drains may start, and when they may not."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from reconciler.model.selector import EVERYTHING
from reconciler.settings.mistakes import Mistakes
from reconciler.settings.sections.fields import Days, Duration, Flag, Selector, Text, TimeOrMoment, Zone
from reconciler.settings.sections.section import Section
from reconciler.settings.times import mistakes_in, times_of


class TimesSection(Section):
    """A period of time that repeats or happens once, for `windows` and `notAllowed`."""

    days: Days | None = Field(
        default=None,
        description="The days on which it starts. Default: every day.",
    )
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
        default=None,
        description="How long it lasts, with a schedule. Default: none.",
    )
    node_selector: Selector = Field(default=EVERYTHING, description="Its nodes. Default: all.")
    time_zone: Zone | None = Field(
        default=None,
        description="The time zone of its times. Default: that of the file.",
    )

    def title(self, zone: ZoneInfo) -> str:
        """Return its times as text. This is the name of an entry without one."""
        return str(times_of(self, self.time_zone or zone))


class WindowSettings(TimesSection):
    """When drains may start."""

    name: Text | None = Field(
        default=None,
        description="Its unique name. Default: its times.",
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
        description="Its unique name. Default: its times.",
    )
    reason: str = Field(default="", description="Its reason. Default: none.")
    absolute: Flag = Field(
        default=False,
        description="Whether it also holds at a deadline.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> NotAllowedSettings:
        if found := mistakes_in(self, may_be_always=False):
            raise Mistakes(tuple(found))
        return self
