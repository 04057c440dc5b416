"""The times of a calendar in one of three forms: iCalendar, the windows of AKS, or a list of freezes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from reconciler.calendar.occurrences import Run
from reconciler.calendar.values import literal, parse_moment, to_utc
from reconciler.features.calendars.aks_maintenance import is_aks, parse_aks
from reconciler.features.calendars.ical import parse_ical
from reconciler.features.calendars.recurrence import Event, Imported, Length
from reconciler.model.content import CalendarPlace
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


MOST_FREEZES = 2000

_LISTS = frozenset(
    {"items", "freezes", "freezewindows", "adminfreezewindow", "adminfreezewindows", "customerfreezewindow",
     "customerfreezewindows"}
)  # fmt: skip
_STARTS, _ENDS = ("start", "from", "fromutc"), ("end", "to", "toutc")


def parse_freezes(value: object, zone: tzinfo) -> Imported:
    """Return the freezes of a list, of a mapping with such lists, or of objects with a `spec`.

    Each has `start` and `end`, or `fromUtc` and `toUtc` like the freeze windows of OpenShift's managed
    upgrades. A moment without an offset is in `zone`, that of a key ending in `Utc` in UTC. Raises ValueError
    that names the entry.
    """
    events = tuple(_freezes(value, zone, "", 0))
    if len(events) > MOST_FREEZES:
        raise ValueError(f"the list has more than {MOST_FREEZES} freezes")
    return Imported(events)


def _freezes(value: object, zone: tzinfo, where: str, depth: int) -> Iterator[Event]:
    if value is None:
        return
    if depth > 3:
        raise ValueError(f"{where or 'the list'}: is nested too deep")
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _freezes(entry, zone, f"{where}[{index}]", depth + 1)
        return
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'the file'}: {literal(value)} is not a freeze with a start and an end")
    keys = {str(key).lower(): key for key in value}
    if isinstance(value.get("spec"), dict):
        yield from _freezes(value["spec"], zone, f"{where}.spec".lstrip("."), depth + 1)
        return
    lists = [key for lowered, key in keys.items() if lowered in _LISTS]
    if lists:
        for key in lists:
            yield from _freezes(value[key], zone, f"{where}.{key}".lstrip("."), depth + 1)
        return
    yield _freeze(value, keys, zone, where)


def _freeze(value: dict[str, object], keys: dict[str, str], zone: tzinfo, where: str) -> Event:
    ends = []
    for names in (_STARTS, _ENDS):
        key = next((keys[name] for name in names if name in keys), None)
        if key is None:
            raise ValueError(f"{where or 'the freeze'}: has no {names[0]}; write start and end")
        try:
            moment: datetime = parse_moment(value[key])
        except ValueError as error:
            raise ValueError(f"{f'{where}.{key}'.lstrip('.')}: {error}") from error
        if key.lower().endswith("utc") and moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        ends.append(to_utc(moment, zone))
    start, end = ends
    if end <= start:
        raise ValueError(f"{where or 'the freeze'}: its end is not after its start")
    return Event(start.replace(tzinfo=None), UTC, Length(), more=(Run(start, end),))
