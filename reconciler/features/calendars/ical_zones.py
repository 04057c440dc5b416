"""The time zones of an iCalendar file: IANA names, and definitions of its own (VTIMEZONE)."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from reconciler.calendar.values import parse_zone
from reconciler.features.calendars.ical_lines import (
    CalendarMistake,
    Component,
    Property,
    parse_rule,
    parse_wall,
)
from reconciler.features.calendars.recurrence import Frequency

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
    defined = [one for one in calendar.components if one.name == "VTIMEZONE"]
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
    for one in candidates:
        if one.upper() in ("UTC", "GMT", "Z"):
            return UTC
        try:
            return parse_zone(one) if "/" in one and not one.startswith("/") else None
        except ValueError:
            continue
    return None


def _defined(zone: Component, name: str) -> FileZone:
    observances = [one for one in zone.components if one.name in ("STANDARD", "DAYLIGHT")]
    if not observances:
        raise CalendarMistake(f"VTIMEZONE {name[:60]} has neither STANDARD nor DAYLIGHT", zone.line)
    if len(observances) > _MOST_OBSERVANCES:
        raise CalendarMistake(f"VTIMEZONE {name[:60]} has too many changes", zone.line)
    if sum(len(one.all("RRULE")) for one in observances) > _MOST_RULES:
        raise CalendarMistake(f"VTIMEZONE {name[:60]} has more than {_MOST_RULES} rules", zone.line)
    changes = []
    for one in observances:
        before, after = _offset(one, "TZOFFSETFROM"), _offset(one, "TZOFFSETTO")
        start = one.one("DTSTART")
        if start is None:
            raise CalendarMistake(f"{one.name} has no DTSTART", one.line)
        first = parse_wall(start.value.strip().removesuffix("Z"), start.line)
        walls = {first}
        for rule in one.all("RRULE"):
            parsed = parse_rule(rule)
            if parsed.frequency is not Frequency.YEARLY:
                raise CalendarMistake("the RRULE of a time zone needs FREQ=YEARLY", rule.line)
            # The last change of a rule that has ended long ago is the one that counts.
            until = parsed.until
            edge = _FROM if until is None else min(_FROM, until.replace(tzinfo=None) - timedelta(days=400))
            # UNTIL is in UTC, and a change is at a time of the offset before it.
            walls.update(parsed.walls(first, max(first, edge), _TO, timezone(before)))
        for dates in one.all("RDATE"):
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
