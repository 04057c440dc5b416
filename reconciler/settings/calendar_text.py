"""Reads a calendar in any of its formats: iCalendar, planned maintenance of AKS, and lists of freezes."""

from __future__ import annotations

from functools import lru_cache

from reconciler.calendar.aks_maintenance import is_aks, parse_aks
from reconciler.calendar.freeze_list import parse_freezes
from reconciler.calendar.ical import parse_ical
from reconciler.calendar.recurrence import Imported
from reconciler.model.calendar_text import CalendarPlace
from reconciler.model.limits import CALENDAR, loads
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
