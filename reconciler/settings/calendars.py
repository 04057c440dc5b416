"""The calendars of the settings, and their texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from reconciler.calendar.aks_maintenance import is_aks, parse_aks
from reconciler.calendar.freeze_list import parse_freezes
from reconciler.calendar.ical import parse_ical
from reconciler.calendar.occurrences import Always
from reconciler.calendar.recurrence import Imported
from reconciler.calendar.windows import NotAllowed, Window
from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.limits import CALENDAR, loads
from reconciler.settings.sections.calendars import CalendarSettings, CalendarUse
from reconciler.settings.yaml import read_yaml


# Each pass reads the same few texts again.
@lru_cache(maxsize=64)
def parse_calendar(text: str, place: CalendarPlace) -> Imported:
    """Return the time of the events in a text. Raises ValueError with what to change.

    A text that begins with `BEGIN:` is iCalendar. JSON and YAML are a maintenance configuration of AKS if
    they have its keys, else a list of freezes.
    """
    if len(text) > CALENDAR:
        raise ValueError(f"is longer than {CALENDAR} characters")
    text = text.removeprefix("\ufeff")
    begin = text.lstrip()
    if begin[:6].upper() == "BEGIN:" and not place.aks:
        return parse_ical(text, place.zone, zone_given=place.zone_given)
    if not begin:
        raise ValueError("is empty")
    value = loads(text, CALENDAR) if begin[0] in "{[" else _yaml(text)
    if place.aks or is_aks(value):
        return parse_aks(value)
    return parse_freezes(value, place.zone)


def _yaml(text: str) -> object:
    document = read_yaml(text)
    if document.mistakes:
        (line, _), mistake = document.mistakes[0]
        raise ValueError(f"line {line}: {mistake.message}")
    if not isinstance(document.value, dict | list):
        raise ValueError(
            "is not a calendar; use iCalendar (BEGIN:VCALENDAR), a maintenance configuration of AKS, or a "
            "list of freezes with start and end"
        )
    return document.value


NOT_READ = CalendarText(unread="nothing has read it yet")


def rules_of(
    calendars: Iterable[tuple[CalendarSettings, CalendarPlace]], texts: Mapping[str, CalendarText]
) -> tuple[list[Window], list[NotAllowed]]:
    """Return the windows and the freezes of the calendars, given what was read of each by its name.

    A calendar that could not be read allows nothing: its windows do not open, and its freeze has no end.
    Its freeze is never absolute, because a mistake in a file must not hold nodes past their deadline.
    """
    windows: list[Window] = []
    freezes: list[NotAllowed] = []
    for one, place in calendars:
        times, unread = _times(place, texts.get(one.name, NOT_READ))
        if one.use is CalendarUse.WINDOWS:
            windows.append(Window(one.name, times or Imported(), one.node_selector, unread))
        elif times is None:
            freezes.append(
                NotAllowed(one.name, Always(), f"can't be read: {unread}", False, one.node_selector)
            )
        else:
            freezes.append(NotAllowed(one.name, times, one.reason, one.absolute, one.node_selector))
    return windows, freezes


def _times(place: CalendarPlace, read: CalendarText) -> tuple[Imported | None, str]:
    """Return the times of a calendar, or None and why they are not known."""
    if read.unread:
        return None, read.unread

    try:
        return parse_calendar(read.text, place), ""
    except ValueError as error:
        return None, str(error)
