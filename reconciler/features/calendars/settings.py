"""`calendars`: windows and freezes from calendars that others keep."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from pydantic import Field, model_validator

from reconciler.calendar.occurrences import Always, Times
from reconciler.calendar.windows import NotAllowed, Window
from reconciler.model import limits
from reconciler.model.content import CalendarPlace, CalendarText, Holder
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.settings.fields import Flag, ObjectName, Section, Selector, Text, Zone
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.schema import FeatureSection, Settings


class CalendarUse(StrEnum):
    """What the events of a calendar are."""

    WINDOWS = "windows"
    NOT_ALLOWED = "notAllowed"


class ObjectKey(Section):
    """A key of a ConfigMap or a Secret."""

    namespace: ObjectName = Field(
        default="node-maintenance", description="Its namespace. Default: `node-maintenance`."
    )
    name: ObjectName = Field(description="Its name.")
    key: Text | None = Field(default=None, description="The key with the calendar. Default: the only one.")


class CalendarSettings(Section):
    """A calendar, in a file or in an object of the cluster."""

    name: Text = Field(description="Its unique name.")
    file: Text | None = Field(
        default=None,
        description="A file (docs/calendars.md), relative to the settings' folder. Default: none.",
    )
    aks: Text | None = Field(
        default=None, description="A file with a maintenance configuration of AKS. Default: none."
    )
    config_map: ObjectKey | None = Field(
        default=None, description="A key of a ConfigMap, instead of a file. Default: none."
    )
    secret: ObjectKey | None = Field(
        default=None, description="A key of a Secret, instead of a file. Default: none."
    )
    as_: CalendarUse | None = Field(
        default=None,
        alias="as",
        description="What its events are: `windows` or `notAllowed`. Default: `windows` for `aks`, else "
        "`notAllowed`.",
    )
    node_selector: Selector = Field(default=EVERYTHING, description="Its nodes. Default: all.")
    time_zone: Zone | None = Field(
        default=None,
        description="The time zone of times without their own. Default: that of the calendar, else of the "
        "file.",
    )
    reason: str = Field(default="", description="The reason of its freezes. Default: none.")
    absolute: Flag = Field(
        default=False,
        description="Whether its freezes also keep drains from a start at their deadline. Not if the "
        "calendar can't be read.",
    )

    @property
    def use(self) -> CalendarUse:
        """What its events are."""
        return self.as_ or (CalendarUse.NOT_ALLOWED if self.aks is None else CalendarUse.WINDOWS)

    @model_validator(mode="after")
    def _fits_together(self) -> CalendarSettings:
        found = []
        given = [key for key in ("file", "aks", "config_map", "secret") if getattr(self, key) is not None]
        if len(given) != 1:
            many = "has more than one of" if given else "needs one of"
            found.append(Mistake((), f"{many} file, aks, configMap and secret; write exactly one"))
        if self.use is CalendarUse.WINDOWS:
            message = "is for freezes; remove it, or write as: notAllowed"
            found += [Mistake((key,), message) for key in ("reason", "absolute") if getattr(self, key)]
        if found:
            raise Mistakes(tuple(found))
        return self

    def place(self, index: int, settings: Settings) -> CalendarPlace:
        """Return where its content is; it is the entry `index` of these settings."""
        folder = settings.origin.folder
        chosen, has_zone = self.time_zone or settings.time_zone, self.time_zone is not None
        path = self.aks if self.aks is not None else self.file
        if path is not None:
            problem = ""
            if not Path(path).is_absolute() and folder is None:
                problem = f"the path {path} is relative, but the settings are not in a file"
            return CalendarPlace(
                self.name,
                key_path=("calendars", index, "file" if self.aks is None else "aks"),
                path=str(folder / path if folder is not None else path),
                problem=problem,
                zone=chosen,
                zone_given=has_zone,
                aks=self.aks is not None,
            )
        kind = Holder.CONFIG_MAP if self.config_map is not None else Holder.SECRET
        held = self.config_map or self.secret
        return CalendarPlace(
            self.name,
            key_path=("calendars", index),
            holder=kind,
            namespace=held.namespace if held else "",
            object=held.name if held else "",
            key=(held.key or "") if held else "",
            zone=chosen,
            zone_given=has_zone,
        )


NOT_READ = CalendarText(unread="nothing has read it yet")


def _times(place: CalendarPlace, read: CalendarText) -> tuple[Times | None, str]:
    """Return the times of a calendar, or None and why they are not known."""
    from reconciler.features.calendars.parsing import parse_calendar

    if read.unread:
        return None, read.unread
    try:
        return parse_calendar(read.text, place), ""
    except ValueError as error:
        return None, str(error)


class _Calendars(FeatureSection[tuple[CalendarSettings, ...]], frozen=True, kw_only=True):
    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        if len(self.of(settings)) > limits.CALENDARS:
            yield Mistake(("calendars",), f"has more than {limits.CALENDARS} entries")

    def places(self, settings: Settings) -> Iterator[CalendarPlace]:
        for index, calendar in enumerate(self.of(settings)):
            yield calendar.place(index, settings)

    def rules(self, settings: Settings) -> Iterator[Window | NotAllowed]:
        """Yield the windows and the freezes of the calendars, from what was read of each.

        A calendar that could not be read allows nothing: its windows do not open, and its freeze has no end.
        Its freeze is never absolute, because a mistake in a file must not hold nodes past their deadline.
        """
        for calendar, place in zip(self.of(settings), self.places(settings), strict=True):
            from reconciler.features.calendars.recurrence import CalendarTimes

            times, unread = _times(place, settings.calendar_texts.get(calendar.name, NOT_READ))
            nodes = calendar.node_selector
            if calendar.use is CalendarUse.WINDOWS:
                yield Window(calendar.name, times or CalendarTimes(), nodes, unread)
            elif times is None:
                yield NotAllowed(calendar.name, Always(), f"can't be read: {unread}", False, nodes)
            else:
                yield NotAllowed(calendar.name, times, calendar.reason, calendar.absolute, nodes)

    def selectors(self, settings: Settings) -> list[LabelSelector]:
        return [calendar.node_selector for calendar in self.of(settings)]


CALENDARS = _Calendars(
    key="calendars",
    type=tuple[CalendarSettings, ...],
    default=(),
    description="Windows and freezes that others keep. Default: none.",
)

SECTIONS = (CALENDARS,)
