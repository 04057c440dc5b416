"""Calendars in the format iCalendar (RFC 5545): the events of a `.ics` file.

Whatever would make an event longer or shorter than a person sees it in their calendar is a mistake of the
whole file: half a freeze is worse than a clear error.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

from msgspec import Struct

from reconciler.calendar.occurrences import Run
from reconciler.calendar.values import parse_zone, to_utc
from reconciler.features.calendars.ical_lines import (
    NO_CALENDAR,
    CalendarMistake,
    Component,
    Property,
    is_date,
    lines_of,
    parse_date,
    parse_length,
    parse_length_text,
    parse_rule,
    parse_wall,
    read_components,
)
from reconciler.features.calendars.recurrence import CalendarTimes, Event, Frequency, Length
from reconciler.model import limits
from reconciler.model.values import replace

MOST_EVENTS = 2000
MOST_REPEATING = 200
MOST_COUNTED = 50
"""Events with COUNT. Their instances are counted one by one from the first one on."""
MOST_STARTS = 200
"""Starts on one day that all repeating events of a calendar may have together."""
_MOST_DATES = 5000
_COUNTED = datetime(2000, 1, 1)  # noqa: DTZ001 - on the wall clock

_OF_EVENTS = "DTSTART DTEND DURATION RRULE RDATE EXDATE EXRULE RECURRENCE-ID UID SEQUENCE STATUS"
_OF_ZONES = "TZID TZOFFSETFROM TZOFFSETTO X-LIC-LOCATION X-WR-TIMEZONE"
_WANTED = frozenset(f"{_OF_EVENTS} {_OF_ZONES}".split())
_SHOWN = frozenset({"SUMMARY"})
_LONGEST_SUMMARY = 100
_ESCAPED = re.compile(r"\\(.)")


def only_what_counts(text: str) -> str:
    """Return a file with the lines that `parse_ical` reads, and no others, such as those with addresses."""
    return lines_of(text, {"BEGIN", "END", *_WANTED, *_SHOWN})


class _Read(Struct, frozen=True):
    """An event of a file. `replaces` is the RECURRENCE-ID: the instance (UTC) or its day that it replaces."""

    event: Event
    uid: str
    sequence: int
    cancelled: bool
    replaces: datetime | date | None
    line: int


class _Zones(Struct, frozen=True):
    """The time zones of a file, and the one for times without a zone."""

    by_name: Mapping[str, tzinfo]
    floating: tzinfo


def parse_ical(text: str, zone: tzinfo, *, zone_given: bool = False) -> CalendarTimes:
    """Return the events of a `.ics` file.

    Days and times without a zone are in the X-WR-TIMEZONE of the file. `zone` applies to a file without
    one, and to every file with `zone_given`. Raises CalendarMistake with the line.
    """
    calendars = read_components(text, _WANTED, _SHOWN)
    read: list[_Read] = []
    for calendar in calendars:
        if calendar.name != "VCALENDAR":
            raise CalendarMistake(NO_CALENDAR, calendar.line)
        own = next((iana_zone(given.value) for given in calendar.all("X-WR-TIMEZONE")), None)
        zones = _Zones(zones_of(calendar), zone if zone_given or own is None else own)
        for component in calendar.components:
            if component.name == "VEVENT":
                if len(read) == MOST_EVENTS:
                    raise CalendarMistake(f"the calendar has more than {MOST_EVENTS} events", component.line)
                read.append(_event(component, zones))
            elif component.name in ("VFREEBUSY", "VAVAILABILITY"):
                message = f"{component.name} is not read; write its times as events (VEVENT)"
                raise CalendarMistake(message, component.line)
    if not calendars:
        raise CalendarMistake("is empty, and not an iCalendar file", 1)

    repeating = [each for each in read if each.event.rules]
    if len(repeating) > MOST_REPEATING:
        line = repeating[MOST_REPEATING].line
        raise CalendarMistake(f"the calendar has more than {MOST_REPEATING} events that repeat", line)
    counted = [each for each in repeating if any(rule.count is not None for rule in each.event.rules)]
    if len(counted) > MOST_COUNTED:
        message = f"the calendar has more than {MOST_COUNTED} events with COUNT; write UNTIL"
        raise CalendarMistake(message, counted[MOST_COUNTED].line)
    starts = 0
    for each in repeating:
        starts += sum(rule.starts_a_day for rule in each.event.rules)
        if starts > MOST_STARTS:
            message = f"the events of the calendar start more than {MOST_STARTS} times on one day"
            raise CalendarMistake(message, each.line)
    return CalendarTimes(tuple(_that_take_place(read)))


def _that_take_place(read: list[_Read]) -> Iterator[Event]:
    """Yield the events that take place; an instance that was moved or cancelled is taken out of its event."""
    newest: dict[tuple[str, object], int] = {}
    for each in read:
        key = (each.uid, each.replaces)
        newest[key] = max(newest.get(key, 0), each.sequence)
    # Programs that send changes write an event again with a higher number.
    current = [each for each in read if not each.uid or each.sequence == newest[each.uid, each.replaces]]
    moved: dict[str, list[datetime | date]] = {}
    for each in current:
        if each.replaces is not None:
            moved.setdefault(each.uid, []).append(each.replaces)
    for each in current:
        if each.cancelled:
            continue
        gone = moved.get(each.uid, []) if each.replaces is None else []
        if not gone:
            yield each.event
            continue
        moments = {start for start in gone if isinstance(start, datetime)}
        days = {start for start in gone if not isinstance(start, datetime)}
        yield replace(
            each.event, without=each.event.without | moments, without_days=each.event.without_days | days
        )


def _event(component: Component, zones: _Zones) -> _Read:
    begin = component.one("DTSTART")
    if begin is None:
        raise CalendarMistake("VEVENT has no DTSTART", component.line)
    if component.all("EXRULE"):
        line = component.all("EXRULE")[0].line
        raise CalendarMistake("EXRULE is not supported; write the dates as EXDATE", line)
    all_day = is_date(begin)
    start, zone = _wall(begin, zones)
    length = _length(component, start, zone, zones, all_day=all_day)

    without: set[datetime] = set()
    without_days: set[date] = set()
    for excluded in component.all("EXDATE"):
        for given in _each(excluded):
            wall, of_given = _wall(given, zones)
            if is_date(given):
                without_days.add(wall.date())
            else:
                without.add(to_utc(wall, of_given))

    rules = tuple(parse_rule(rule) for rule in component.all("RRULE"))
    more: list[Run] = []
    for further in component.all("RDATE"):
        for given in _each(further):
            first, slash, second = given.value.partition("/")
            wall, of_given = _wall(replace(given, value=first), zones)
            if not slash:
                end = length.end(wall, of_given)
            elif second.strip().upper().startswith(("P", "+")):
                end = parse_length_text(second.strip(), given.line).end(wall, of_given)
            else:
                end = to_utc(*_wall(replace(given, value=second), zones))
            more.append(Run(to_utc(wall, of_given), end))

    event = Event(
        start,
        zone,
        length,
        rules,
        tuple(more),
        frozenset(without),
        frozenset(without_days),
        _summary(component),
    )
    if start < _COUNTED and any(rule.count is not None for rule in event.rules):
        raise CalendarMistake(f"an event with COUNT starts before {_COUNTED.year}; write UNTIL", begin.line)
    if event.rules and length.wall + length.elapsed > timedelta(days=366):
        raise CalendarMistake("an event that repeats lasts longer than a year", component.line)
    uid, status = component.one("UID"), component.one("STATUS")
    cancelled = status is not None and status.value.strip().upper() == "CANCELLED"
    sequence, number = component.one("SEQUENCE"), "0"
    if sequence is not None:
        number = sequence.value.strip()
        if not number.isdecimal() or len(number) > 12:
            raise CalendarMistake(f"SEQUENCE:{number[:40]} is not a whole number", sequence.line)
    recurrence, replaces = component.one("RECURRENCE-ID"), None
    if recurrence is not None:
        if recurrence.parameters.get("RANGE"):
            message = (
                "RECURRENCE-ID with RANGE is not supported; end the event with UNTIL, and add a second one"
            )
            raise CalendarMistake(message, recurrence.line)
        wall, of_given = _wall(recurrence, zones)
        replaces = wall.date() if is_date(recurrence) else to_utc(wall, of_given)
    return _Read(event, uid.value.strip() if uid else "", int(number), cancelled, replaces, component.line)


def _summary(component: Component) -> str:
    """Return the name of the event for people: one line, printable, and cut where it is long."""
    given = next(iter(component.all("SUMMARY")), None)
    if given is None:
        return ""
    plain = _ESCAPED.sub(lambda escaped: " " if escaped[1] in "nN" else escaped[1], given.value)
    line = " ".join(plain.split())
    return limits.text("".join(each if each.isprintable() else "\ufffd" for each in line), _LONGEST_SUMMARY)


def _wall(given: Property, zones: _Zones) -> tuple[datetime, tzinfo]:
    """Return a date or a time on its wall clock, and the zone of that clock."""
    text = given.value.strip()
    if is_date(given):
        return parse_date(text, given.line), zones.floating
    if text.upper().endswith("Z"):
        return parse_wall(text[:-1], given.line), UTC
    return parse_wall(text, given.line), zone_of(given, zones.by_name, zones.floating)


def _length(component: Component, start: datetime, zone: tzinfo, zones: _Zones, *, all_day: bool) -> Length:
    end, duration = component.one("DTEND"), component.one("DURATION")
    if end is not None and duration is not None:
        raise CalendarMistake("VEVENT has both DTEND and DURATION; keep one of them", duration.line)
    if duration is not None:
        return parse_length(duration)
    if end is None:
        return Length(wall=timedelta(days=1 if all_day else 0))
    if is_date(end) is not all_day:
        raise CalendarMistake("DTEND and DTSTART must both have a time, or both have none", end.line)
    last, of_end = _wall(end, zones)
    # In one zone the end is a time on the wall clock too: 05:00 is 05:00 when the clocks have changed.
    length = (
        Length(wall=last - start)
        if of_end == zone
        else Length(elapsed=to_utc(last, of_end) - to_utc(start, zone))
    )
    if length.wall + length.elapsed < timedelta():
        raise CalendarMistake("DTEND is before DTSTART", end.line)
    return length


def _each(given: Property) -> list[Property]:
    """Return the values of a list, each as a property of its own."""
    values = [value.strip() for value in given.value.split(",")]
    if len(values) > _MOST_DATES:
        raise CalendarMistake(f"{given.name} has more than {_MOST_DATES} dates", given.line)
    return [replace(given, value=value) for value in values if value]


_FROM, _TO = datetime(2000, 1, 1), datetime(2060, 1, 1)  # noqa: DTZ001 - times on the wall clock
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3])([0-5][0-9])([0-5][0-9])?")
_MOST_ZONES = 50
_MOST_OBSERVANCES = 400
"""Some programs write each change of the past on its own."""
_MOST_RULES = 10
"""Rules of one zone. Microsoft's zones have two."""


class FileZone(tzinfo):
    """A time zone that a file defines: the moments at which its offset changes.

    A time that the clocks skip has the offset before the change. A time that comes twice is the first one.
    """

    def __init__(self, name: str, changes: Iterable[tuple[datetime, timedelta, timedelta]]) -> None:
        """Take each change: the wall clock (naive) before it, and the offsets before and after it."""
        ordered = sorted((wall - before, before, after) for wall, before, after in changes)
        self._name = name
        self._moments = [moment for moment, _, _ in ordered]
        self._before = [before for _, before, _ in ordered]
        self._after = [after for _, _, after in ordered]

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """Return the offset of a time on the wall clock."""
        if moment is None:
            return self._before[0]
        wall = moment.replace(tzinfo=None)
        middle = bisect.bisect_right(self._moments, wall)
        nearby = range(max(middle - 2, 0), min(middle + 2, len(self._moments)))
        offsets = {offset for i in nearby for offset in (self._before[i], self._after[i])}
        for offset in sorted(offsets, reverse=True):
            if self._at(wall - offset) == offset:
                return offset
        skipped = [i for i in nearby if self._before[i] <= wall - self._moments[i] < self._after[i]]
        return self._before[skipped[0]] if skipped else self._at(wall)

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Return None: a file does not say what part of the offset is summer time."""
        return None

    def tzname(self, moment: datetime | None) -> str:
        """Return its name in the file."""
        return self._name

    def fromutc(self, moment: datetime) -> datetime:
        """Return the time on the wall clock of a moment in UTC."""
        return moment + self._at(moment.replace(tzinfo=None))

    def _at(self, moment: datetime) -> timedelta:
        """Return the offset at a moment (UTC, naive)."""
        index = bisect.bisect_right(self._moments, moment)
        return self._after[index - 1] if index else self._before[0]


def zones_of(calendar: Component) -> dict[str, tzinfo]:
    """Return the time zones that a VCALENDAR defines, by TZID; CalendarMistake for a broken definition.

    A zone that names an IANA zone is that zone, because files often have only the rules of one year.
    """
    defined = [component for component in calendar.components if component.name == "VTIMEZONE"]
    if len(defined) > _MOST_ZONES:
        raise CalendarMistake(f"the file has more than {_MOST_ZONES} time zones", defined[_MOST_ZONES].line)
    found: dict[str, tzinfo] = {}
    for one in defined:
        name = one.one("TZID")
        if name is None:
            raise CalendarMistake("VTIMEZONE has no TZID", one.line)
        location = one.one("X-LIC-LOCATION")
        names = (name.value, *((location.value,) if location else ()))
        known = next((zone for text in names if (zone := iana_zone(text)) is not None), None)
        found[name.value] = known or _defined(one, name.value)
    return found


def zone_of(given: Property, zones: Mapping[str, tzinfo], floating: tzinfo) -> tzinfo:
    """Return the time zone of a property: that of its TZID, `floating` without one."""
    name = given.parameters.get("TZID", "")
    if not name:
        return floating
    zone = zones.get(name) or iana_zone(name)
    if zone is None:
        raise CalendarMistake(
            f"TZID={name[:60]} is not an IANA time zone, and the file has no VTIMEZONE with this name",
            given.line,
        )
    return zone


def iana_zone(name: str) -> tzinfo | None:
    """Return the zone of an IANA name, None if there is none.

    Some programs put a prefix before the name: `/example.com/Europe/Berlin`.
    """
    if len(name) > 120:
        return None
    parts = name.strip().split("/")
    candidates = [name.strip()]
    if name.startswith("/"):
        candidates += ["/".join(parts[-count:]) for count in (3, 2)]
    for candidate in candidates:
        if candidate.upper() in ("UTC", "GMT", "Z"):
            return UTC
        try:
            return parse_zone(candidate) if "/" in candidate and not candidate.startswith("/") else None
        except ValueError:
            continue
    return None


def _defined(zone: Component, name: str) -> FileZone:
    observances = [component for component in zone.components if component.name in ("STANDARD", "DAYLIGHT")]
    if not observances:
        raise CalendarMistake(f"VTIMEZONE {name[:60]} has neither STANDARD nor DAYLIGHT", zone.line)
    if len(observances) > _MOST_OBSERVANCES:
        raise CalendarMistake(f"VTIMEZONE {name[:60]} has too many changes", zone.line)
    if sum(len(observance.all("RRULE")) for observance in observances) > _MOST_RULES:
        raise CalendarMistake(f"VTIMEZONE {name[:60]} has more than {_MOST_RULES} rules", zone.line)
    changes = []
    for observance in observances:
        before, after = _offset(observance, "TZOFFSETFROM"), _offset(observance, "TZOFFSETTO")
        start = observance.one("DTSTART")
        if start is None:
            raise CalendarMistake(f"{observance.name} has no DTSTART", observance.line)
        first = parse_wall(start.value.strip().removesuffix("Z"), start.line)
        walls = {first}
        for rule in observance.all("RRULE"):
            parsed = parse_rule(rule)
            if parsed.frequency is not Frequency.YEARLY:
                raise CalendarMistake("the RRULE of a time zone needs FREQ=YEARLY", rule.line)
            # The last change of a rule that has ended long ago is the one that counts.
            until = parsed.until
            edge = _FROM if until is None else min(_FROM, until.replace(tzinfo=None) - timedelta(days=400))
            # UNTIL is in UTC, and a change is at a time of the offset before it.
            walls.update(parsed.walls(first, max(first, edge), _TO, timezone(before)))
        for dates in observance.all("RDATE"):
            walls.update(parse_wall(part.strip(), dates.line) for part in dates.value.split(",")[:1000])
        changes += [(wall, before, after) for wall in walls]
    return FileZone(name, changes)


def _offset(observance: Component, name: str) -> timedelta:
    given = observance.one(name)
    found = _OFFSET.fullmatch(given.value.strip()) if given is not None else None
    if found is None:
        line = given.line if given is not None else observance.line
        raise CalendarMistake(f"{observance.name} has no {name} like +0100", line)
    sign, hours, minutes, seconds = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds or 0))
    return -offset if sign == "-" else offset
