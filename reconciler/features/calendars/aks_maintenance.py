"""Planned-maintenance configurations of AKS, as ARM and `az aks maintenanceconfiguration show` give them.

A configuration has a schedule with a fixed offset from UTC, so its hours move when the clocks of people
change. The older form, that of the configuration `default`, has hours of the week in UTC. A resource of the
type `maintenanceWindows`, which several clusters can share, has the same schedule in its properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

from reconciler.calendar.occurrences import Run
from reconciler.calendar.values import literal, parse_moment, to_utc
from reconciler.features.calendars.recurrence import CalendarTimes, Event, Frequency, Length, Rule
from reconciler.settings.foreign import known_keys, value_of

_DAY = timedelta(days=1)
_OFFSET = re.compile(r"([+-])(0[0-9]|1[0-4]):([0-5][0-9])")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::[0-5][0-9])?")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}
_RULES = {
    "daily": ("intervalDays",),
    "weekly": ("intervalWeeks", "dayOfWeek"),
    "absoluteMonthly": ("intervalMonths", "dayOfMonth"),
    "relativeMonthly": ("intervalMonths", "weekIndex", "dayOfWeek"),
}
"""The keys of each schedule."""

_SCHEDULES = "daily, weekly, absoluteMonthly and relativeMonthly"
_MOST_SPANS = 500
_SOME_MONDAY = datetime(2001, 1, 1)  # noqa: DTZ001 - on the wall clock
_KEYS = ("maintenanceWindow", "timeInWeek", "notAllowedTime")
_WINDOW = ("schedule", "startDate", "startTime", "durationHours", "utcOffset", "notAllowedDates")
_AROUND = (
    "id", "name", "type", "apiVersion", "location", "tags", "eTag", "resourceGroup", "systemData",
    "provisioningState", "dependsOn", "comments",
)  # fmt: skip
"""Keys of a resource that say nothing of its times."""

_PLACES = {
    **dict.fromkeys(_KEYS, "properties, or beside no properties"),
    **dict.fromkeys(_WINDOW, "maintenanceWindow"),
    "weekly": "maintenanceWindow.schedule",
    "daily": "maintenanceWindow.schedule",
}


def is_aks(value: object) -> bool:
    """Return whether a document has the keys of a maintenance configuration, in any spelling."""
    configurations = value_of(value, "value") if isinstance(value, dict) else value
    if isinstance(configurations, list) and len(configurations) == 1:
        value = configurations[0]
    if not isinstance(value, dict):
        return False
    properties = value_of(value, "properties")
    parts = [value, properties] if isinstance(properties, dict) else [value]
    return any(any(value_of(part, key) is not None for key in _KEYS) or _is_shared(part) for part in parts)


def parse_aks(value: object) -> CalendarTimes:
    """Return the time of the windows of a configuration, without the times at which it allows none.

    Keys may be in camel or snake case, as the CLI and the SDKs write them. Raises ValueError with the key
    that is wrong, also for one that is not known and has a value.
    """
    document, created, path = _document(value)
    if _is_shared(document):
        event, dates = _window(document, path, created, around=_AROUND)
        return CalendarTimes((event,), dates)
    if not any(value_of(document, key) for key in _KEYS):
        raise ValueError(f"is not a maintenance configuration of AKS: it has none of {', '.join(_KEYS)}")
    document = known_keys(document, (*_KEYS, *_AROUND), path, _PLACES)
    taken = tuple(_not_allowed_time(document.get("notAllowedTime")))
    window, week = document.get("maintenanceWindow"), document.get("timeInWeek")
    if window is not None:
        if week:
            raise ValueError("timeInWeek: can't be combined with maintenanceWindow; use a file for each")
        event, dates = _window(_mapping(window, "maintenanceWindow"), "maintenanceWindow", created)
        return CalendarTimes((event,), (*taken, *dates))
    hours = tuple(_time_in_week(week))
    return CalendarTimes(hours, taken, always=not hours)


def _is_shared(document: Mapping[str, Any]) -> bool:
    """Whether these are the properties of a resource `maintenanceWindows`."""
    return value_of(document, "schedule") is not None and value_of(document, "durationHours") is not None


def _document(value: object) -> tuple[Mapping[str, Any], object, str]:
    """Return the properties of the only configuration in a document, when it was created, and their path."""
    if isinstance(value, dict) and isinstance(value_of(value, "value"), list):
        page = known_keys(value, ("value", "nextLink"), "")
        if page.get("nextLink"):
            raise ValueError("nextLink: is a second page with more configurations; use a file for each")
        value = page["value"]
    if isinstance(value, list):
        if len(value) != 1:
            raise ValueError(
                f"has {len(value)} configurations; use a file for each, as `az aks maintenanceconfiguration "
                "show` prints it"
            )
        value = value[0]
    resource = _mapping(value, "the file")
    system = value_of(resource, "systemData")
    created = value_of(system, "createdAt") if isinstance(system, dict) else None
    properties = value_of(resource, "properties")
    if not isinstance(properties, dict):
        return resource, created, ""
    known_keys(resource, ("properties", *_AROUND), "", _PLACES)
    # Messages name the keys of a configuration without `properties`, as most files have them.
    return properties, created, "properties" if _is_shared(properties) else ""


def _window(
    given: Mapping[str, Any], path: str, created: object, around: tuple[str, ...] = ()
) -> tuple[Event, tuple[Event, ...]]:
    window = known_keys(given, (*_WINDOW, *around), path, _PLACES)
    zone = _offset(window.get("utcOffset"), f"{path}.utcOffset")
    clock = _clock(window.get("startTime"), f"{path}.startTime")
    hours = _count(window.get("durationHours"), f"{path}.durationHours", 24)
    schedule = _mapping(window.get("schedule"), f"{path}.schedule")
    named = [(key, part) for key, part in schedule.items() if part is not None]
    if len(named) != 1:
        raise ValueError(f"{path}.schedule: needs exactly one of {_SCHEDULES}")
    key, part = named[0]
    begins, first = window.get("startDate"), None
    if begins:
        first = _date(begins, f"{path}.startDate")
    elif created:
        # AKS then takes the day on which the configuration was created.
        first = _moment(created, "systemData.createdAt").astimezone(zone).date()
    rule = _rule(key, _mapping(part, f"{path}.schedule.{key}"), f"{path}.schedule.{key}")
    if first is None and rule.interval > 1:
        raise ValueError(
            f"{path}.startDate: is missing, and the file has no systemData.createdAt: an interval above 1 "
            "counts from the day on which the configuration was created; write that day as startDate"
        )
    # The start date only says from when on the schedule applies, and which of its intervals comes first. So
    # the first start fits the days of the rule, whatever its interval.
    begin = datetime.combine(first or _SOME_MONDAY.date(), clock)
    every = Rule(rule.frequency, days=rule.days, month_days=rule.month_days)
    start = next(every.walls(begin, begin, begin + 400 * _DAY, zone))
    event = Event(start, zone, Length(elapsed=timedelta(hours=hours)), (rule,))

    dates = []
    path = f"{path}.notAllowedDates"
    for index, span in enumerate(_list(window.get("notAllowedDates"), path)):
        here = f"{path}[{index}]"
        entry = known_keys(_mapping(span, here), ("start", "end"), here)
        first_day = _date(entry.get("start"), f"{here}.start")
        # The end is a day on which maintenance is not allowed either.
        end = _date(entry.get("end"), f"{here}.end") + _DAY
        if end <= first_day:
            raise ValueError(f"{here}.end: is before the start")
        dates.append(Event(datetime.combine(first_day, time()), zone, Length(wall=end - first_day)))
    return event, tuple(dates)


def _rule(key: str, given: Mapping[str, Any], path: str) -> Rule:
    kind = next((name for name in _RULES if value_of({key: True}, name)), None)
    if kind is None:
        raise ValueError(f"{path}: is not one of {_SCHEDULES}")
    part = known_keys(given, _RULES[kind], path)
    match kind:
        case "daily":
            return Rule(Frequency.DAILY, _count(part.get("intervalDays"), f"{path}.intervalDays", 7))
        case "weekly":
            interval = _count(part.get("intervalWeeks"), f"{path}.intervalWeeks", 4)
            day = _day(part.get("dayOfWeek"), f"{path}.dayOfWeek")
            return Rule(Frequency.WEEKLY, interval, days=((day, 0),))
    interval = _count(part.get("intervalMonths"), f"{path}.intervalMonths", 6)
    if kind == "absoluteMonthly":
        month_day = _count(part.get("dayOfMonth"), f"{path}.dayOfMonth", 31)
        return Rule(Frequency.MONTHLY, interval, month_days=(month_day,))
    week = str(part.get("weekIndex")).lower()
    if week not in _WEEKS:
        raise ValueError(
            f"{path}.weekIndex: {literal(part.get('weekIndex'))} is not one of First, Second, Third, Fourth, "
            "Last"
        )
    day = _day(part.get("dayOfWeek"), f"{path}.dayOfWeek")
    return Rule(Frequency.MONTHLY, interval, days=((day, _WEEKS[week]),))


def _not_allowed_time(value: object) -> Iterator[Event]:
    for index, span in enumerate(_list(value, "notAllowedTime")):
        here = f"notAllowedTime[{index}]"
        entry = known_keys(_mapping(span, here), ("start", "end"), here)
        start, end = (_moment(entry.get(key), f"{here}.{key}") for key in ("start", "end"))
        if end <= start:
            raise ValueError(f"{here}.end: is not after the start")
        yield Event(start.replace(tzinfo=None), UTC, Length(), more=(Run(start, end),))


def _time_in_week(value: object) -> Iterator[Event]:
    for index, entry in enumerate(_list(value, "timeInWeek")):
        here = f"timeInWeek[{index}]"
        given = known_keys(_mapping(entry, here), ("day", "hourSlots"), here)
        day = _day(given.get("day"), f"{here}.day")
        slots = _list(given.get("hourSlots"), f"{here}.hourSlots")
        if not slots:
            raise ValueError(f"{here}.hourSlots: has no hours; write each hour from 0 to 23, like [1, 2]")
        for slot in slots:
            if isinstance(slot, bool) or not isinstance(slot, int) or not 0 <= slot <= 23:
                raise ValueError(f"{here}.hourSlots: {literal(slot)} is not an hour from 0 to 23")
            start = _SOME_MONDAY + timedelta(days=day, hours=slot)
            yield Event(start, UTC, Length(elapsed=timedelta(hours=1)), (Rule(Frequency.WEEKLY),))


def _mapping(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{path}: {literal(value)} is not a mapping of keys to values")
    return value


def _list(value: object, path: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{path}: {literal(value)} is not a list")
    if len(value) > _MOST_SPANS:
        raise ValueError(f"{path}: has more than {_MOST_SPANS} entries")
    return value


def _count(value: object, path: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{path}: {literal(value)} is not a whole number from 1 to {most}")
    return value


def _day(value: object, path: str) -> int:
    if not isinstance(value, str) or value.lower() not in _DAYS:
        raise ValueError(f"{path}: {literal(value)} is not a day like Monday")
    return _DAYS.index(value.lower())


def _offset(value: object, path: str) -> timezone:
    if value is None:
        return UTC
    found = _OFFSET.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{path}: {literal(value)} is not an offset like +02:00")
    offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return timezone(-offset if found[1] == "-" else offset)


def _clock(value: object, path: str) -> time:
    found = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{path}: {literal(value)} is not a time of day like 22:00")
    return time(int(found[1]), int(found[2]))


def _moment(value: object, path: str) -> datetime:
    try:
        return to_utc(parse_moment(value), UTC)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _date(value: object, path: str) -> date:
    """Return a date. Some versions of the API write it with the time 00:00 behind it."""
    try:
        return parse_moment(value).date()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
