"""The times of a calendar in one of three forms: iCalendar, the windows of AKS, or a list of freezes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from reconciler.calendar.occurrences import Run
from reconciler.calendar.values import literal, parse_moment, parse_zone, to_utc
from reconciler.features.calendars.aks_maintenance import is_aks, parse_aks
from reconciler.features.calendars.ical import only_what_counts, parse_ical
from reconciler.features.calendars.recurrence import CalendarTimes, Event, Length
from reconciler.model.content import CalendarPlace
from reconciler.model.limits import CALENDAR, loads
from reconciler.settings.foreign import has_key, known_keys
from reconciler.settings.yaml import read_yaml


# Each pass reads the same few texts again.
@lru_cache(maxsize=64)
def parse_calendar(text: str, place: CalendarPlace) -> CalendarTimes:
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
    if begin[0] in "{[":
        value = loads(text, CALENDAR)
        # Of two keys with one name, another program may take the other one.
        json.loads(text, object_pairs_hook=_named_once)
    else:
        document = read_yaml(text)
        if document.mistakes:
            (line, _), mistake = document.mistakes[0]
            raise ValueError(f"line {line}: {mistake.message}")
        value = document.value
        if not isinstance(value, dict | list):
            raise ValueError(
                "is not a calendar; use iCalendar (BEGIN:VCALENDAR), a maintenance configuration of AKS, or "
                "a list of freezes with start and end"
            )
    if place.aks or is_aks(value):
        return parse_aks(value)
    return parse_freezes(value, place.zone)


def without_the_rest(text: str) -> str:
    """Return a text that `parse_calendar` has read, without what has no effect."""
    text = text.removeprefix("\ufeff")
    return only_what_counts(text) if text.lstrip()[:6].upper() == "BEGIN:" else text


def _named_once(pairs: list[tuple[str, object]]) -> None:
    """Raise ValueError for a key that an object has twice: JSON would drop the first one."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise ValueError(f"{name}: is there twice in one object; keep one of them")
        seen.add(name)


MOST_FREEZES = 2000

_LISTS = (
    "items", "freezes", "freezeWindows", "adminFreezeWindow", "adminFreezeWindows", "customerFreezeWindow",
    "customerFreezeWindows",
)  # fmt: skip
_STARTS, _ENDS = (
    ("start", "from", "fromUtc", "startDate", "startTime"),
    ("end", "to", "toUtc", "endDate", "endTime"),
)
_ZONES = ("timeZone", "tz")
_WORDS = ("name", "reason", "description", "summary", "title", "comment", "id", "owner", "ticket", "url")
"""Keys of a freeze that say nothing of its time."""

_AROUND = ("apiVersion", "kind", "metadata", "status", "version", *_WORDS)
"""The same of what has freezes below it."""


def parse_freezes(value: object, zone: tzinfo) -> CalendarTimes:
    """Return the freezes of a list, of a mapping with such lists, or of objects with a `spec`.

    Each has `start` and `end`, or `fromUtc` and `toUtc` like the freeze windows of OpenShift's managed
    upgrades. A moment without an offset is in the `timeZone` of the freeze or of what it stands in, else in
    `zone`, that of a key ending in `Utc` in UTC. Raises ValueError that names the entry, also for a key that
    is not known and has a value.
    """
    events = tuple(_freezes(value, zone, "", 0))
    if len(events) > MOST_FREEZES:
        raise ValueError(f"the list has more than {MOST_FREEZES} freezes")
    return CalendarTimes(events)


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
    if value.get("kind") in ("ConfigMap", "Secret"):
        key = "configMap" if value["kind"] == "ConfigMap" else "secret"
        raise ValueError(
            f"{where or 'the file'}: is a manifest; write what its key has into a file, or name the object "
            f"in the cluster as `{key}`"
        )
    below = ("spec", *_LISTS)
    if not any(has_key(value, key) for key in below):
        yield _freeze(value, zone, where)
        return
    given = known_keys(value, (*below, *_ZONES, *_AROUND), where)
    zone = _zone(given, zone, where)
    for key in below:
        yield from _freezes(given.get(key), zone, f"{where}.{key}".lstrip("."), depth + 1)


def _zone(given: dict[str, object], zone: tzinfo, where: str) -> tzinfo:
    for key in _ZONES:
        if key in given:
            try:
                return parse_zone(given[key])
            except ValueError as error:
                raise ValueError(f"{f'{where}.{key}'.lstrip('.')}: {error}") from error
    return zone


def _freeze(value: dict[str, object], zone: tzinfo, where: str) -> Event:
    given = known_keys(value, (*_STARTS, *_ENDS, *_ZONES, *_WORDS), where)
    zone, ends = _zone(given, zone, where), []
    for names in (_STARTS, _ENDS):
        keys = [name for name in names if name in given]
        if not keys:
            raise ValueError(f"{where or 'the freeze'}: has no {names[0]}; write start and end")
        if len(keys) > 1:
            raise ValueError(f"{where or 'the freeze'}: has both {keys[0]} and {keys[1]}; write one of them")
        try:
            moment: datetime = parse_moment(given[keys[0]])
        except ValueError as error:
            raise ValueError(f"{f'{where}.{keys[0]}'.lstrip('.')}: {error}") from error
        if keys[0].endswith("Utc") and moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        ends.append(to_utc(moment, zone))
    start, end = ends
    if end <= start:
        raise ValueError(f"{where or 'the freeze'}: its end is not after its start")
    return Event(start.replace(tzinfo=None), UTC, Length(), more=(Run(start, end),))
