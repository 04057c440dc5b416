"""Reads the lines of an iCalendar file (RFC 5545): components with line numbers, dates, durations, rules.

Only the properties that a caller names are read. Whatever else a program writes into its files is skipped,
so that it can't make a calendar unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta

from msgspec import Struct, field

from reconciler.features.calendars.recurrence import Frequency, Length, Rule
from reconciler.model.limits import count_of

NO_CALENDAR = "is not an iCalendar file, which begins with BEGIN:VCALENDAR"

_DEEPEST = 10
"""Components inside each other. RFC 5545 has three: VCALENDAR, VEVENT, VALARM."""

_MOST_COMPONENTS = 20_000
_LONGEST_VALUE = 100_000
"""Characters of a property that is read; a long list of EXDATE has a few thousand."""
_LONGEST_SHOWN = 2000
"""Characters of a property that is only shown, with its parameters."""

_BREAK = re.compile(r"\r\n|\n|\r")


class CalendarMistake(ValueError):
    """What is wrong with a calendar, with the line (from 1) if it is known."""

    def __init__(self, message: str, line: int = 0) -> None:
        """Put the line before the message."""
        super().__init__(f"line {line}: {message}" if line else message)


class Property(Struct, frozen=True):
    """A property: its name in capitals, its parameters by name in capitals, and its raw value."""

    name: str
    parameters: Mapping[str, str]
    value: str
    line: int


class Component(Struct):
    """A component: what stands between BEGIN and END. Its name is in capitals."""

    name: str
    line: int
    properties: list[Property] = field(default_factory=list)
    components: list[Component] = field(default_factory=list)

    def all(self, name: str) -> list[Property]:
        """Return its properties of this name."""
        return [one for one in self.properties if one.name == name]

    def one(self, name: str) -> Property | None:
        """Return its only property of this name, None if it has none; CalendarMistake if it has several."""
        found = self.all(name)
        if len(found) > 1:
            raise CalendarMistake(f"{self.name} has a second {name}", found[1].line)
        return found[0] if found else None


def read_components(text: str, wanted: Collection[str], shown: Collection[str] = ()) -> list[Component]:
    """Return the outermost components of a file, with the properties whose names are `wanted` or `shown`.

    Properties that are only shown to people are no mistake: their values are cut, and one that can't be read
    is left out. Raises CalendarMistake for a file that is cut off, nested too deep, or no iCalendar file.
    """
    found: list[Component] = []
    open_ones: list[Component] = []
    count = 0
    for number, line in _unfolded(text):
        name, rest = _name(line, number)
        if name == "BEGIN":
            count += 1
            if count > _MOST_COMPONENTS:
                raise CalendarMistake(f"the file has more than {_MOST_COMPONENTS} components", number)
            if len(open_ones) == _DEEPEST:
                raise CalendarMistake(f"components are nested deeper than {_DEEPEST} levels", number)
            component = Component(rest[1:].strip().upper(), number)
            (open_ones[-1].components if open_ones else found).append(component)
            open_ones.append(component)
        elif name == "END":
            ended = rest[1:].strip().upper()
            if not open_ones or open_ones[-1].name != ended:
                expected = f"END:{open_ones[-1].name}" if open_ones else "BEGIN:VCALENDAR"
                raise CalendarMistake(f"END:{ended[:60]} stands where {expected} is expected", number)
            open_ones.pop()
        elif not open_ones:
            raise CalendarMistake(NO_CALENDAR, number)
        elif name in wanted:
            open_ones[-1].properties.append(_property(name, rest, number))
        elif name in shown:
            with suppress(CalendarMistake):
                open_ones[-1].properties.append(_property(name, rest[:_LONGEST_SHOWN], number))
    if open_ones:
        missing = open_ones[-1]
        raise CalendarMistake(
            f"END:{missing.name} is missing for the BEGIN:{missing.name} on this line: the file is cut off",
            missing.line,
        )
    return found


def lines_of(text: str, names: Collection[str]) -> str:
    """Return the content lines with these names, each as one line. Raises CalendarMistake."""
    lines = ((_name(line, number)[0], line) for number, line in _unfolded(text))
    # A line that begins with a space would go on with the one before.
    return "".join(f"{line.strip()}\n" for name, line in lines if name in names)


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Yield each content line with the number of its first line in the file."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(_BREAK.split(text), 1):
        if line[:1] in (" ", "\t") and parts:
            parts.append(line[1:])
            continue
        if parts:
            yield first, "".join(parts)
        parts, first = ([line], number) if line.strip() else ([], number)
    if parts:
        yield first, "".join(parts)


def _name(line: str, number: int) -> tuple[str, str]:
    """Return the name of a content line in capitals, and the rest, which begins with `;` or `:`."""
    for index, character in enumerate(line):
        if character in ":;":
            return line[:index].strip().upper(), line[index:]
    raise CalendarMistake(f"{line[:60]!r} is not a line of an iCalendar file: it has no colon", number)


def _property(name: str, rest: str, number: int) -> Property:
    if len(rest) > _LONGEST_VALUE:
        raise CalendarMistake(f"{name} is longer than {_LONGEST_VALUE} characters", number)
    quoted = False
    begin = 1
    parts: list[str] = []
    for index, character in enumerate(rest):
        if character == '"':
            quoted = not quoted
        elif character in ":;" and not quoted:
            if index:
                parts.append(rest[begin:index])
            begin = index + 1
            if character == ":":
                parameters = (part.partition("=")[::2] for part in parts)
                named = {key.strip().upper(): value.strip().strip('"') for key, value in parameters}
                return Property(name, named, rest[begin:], number)
    raise CalendarMistake(f"{name} has no value", number)


_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_TIME = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})")
_DURATION = re.compile(
    r"\+?P(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?"
    r"(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9})S)?)?"
)
_DAY_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BY_DAY = re.compile(rf"([+-]?[0-9]{{1,2}})?({'|'.join(_DAY_CODES)})")
_NUMBER = re.compile(r"[+-]?[0-9]{1,6}")

_LISTS = {
    "BYMONTH": ("months", 1, 12, False),
    "BYMONTHDAY": ("month_days", 1, 31, True),
    "BYYEARDAY": ("year_days", 1, 366, True),
    "BYWEEKNO": ("weeks", 1, 53, True),
    "BYHOUR": ("hours", 0, 23, False),
    "BYMINUTE": ("minutes", 0, 59, False),
    "BYSECOND": ("seconds", 0, 59, False),
    "BYSETPOS": ("positions", 1, 366, True),
}
"""The field of each list of numbers, its least and greatest number, and whether it may be negative."""

_MOST_COUNT = 5000
_MOST_STARTS = 24
_LONGEST = timedelta(days=3650)
_FIRST_YEAR, _LAST_YEAR = 1600, 9000
"""Microsoft's time zones begin in 1601. With this margin, no conversion overflows `datetime`."""


def is_date(given: Property) -> bool:
    """Return whether the value of a property is a date without a time."""
    said = given.parameters.get("VALUE", "").upper() == "DATE"
    return said or _DATE.fullmatch(given.value.strip()) is not None


def parse_date(text: str, line: int) -> datetime:
    """Return the midnight (naive) of a date like `20261126`. Raises CalendarMistake."""
    found = _DATE.fullmatch(text)
    if found is None:
        raise CalendarMistake(f"{text[:40]!r} is not a date like 20261126", line)
    return _checked(found.groups(), text, line)


def parse_wall(text: str, line: int) -> datetime:
    """Return a time on the wall clock (naive) like `20261126T060000`. Raises CalendarMistake."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise CalendarMistake(f"{text[:40]!r} is not a date and time like 20261126T060000", line)
    return _checked(found.groups(), text, line)


def _checked(groups: tuple[str, ...], text: str, line: int) -> datetime:
    numbers = [int(group) for group in groups]
    if len(numbers) == 6 and numbers[5] == 60:
        numbers[5] = 59  # a leap second, which Python does not know
    try:
        found = datetime(*numbers)  # type: ignore[arg-type]  # noqa: DTZ001 - on the wall clock
    except ValueError as error:
        raise CalendarMistake(f"{text[:40]!r} is not a valid date: {error}", line) from error
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise CalendarMistake(f"{text[:40]!r} is not between the years {_FIRST_YEAR} and {_LAST_YEAR}", line)
    return found


def parse_length(given: Property) -> Length:
    """Return a DURATION: weeks and days on the wall clock, and the rest as elapsed time."""
    return parse_length_text(given.value.strip(), given.line)


def parse_length_text(text: str, line: int) -> Length:
    """Return a duration like `P1DT2H`. Raises CalendarMistake, also if it is negative."""
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(found.groups()):
        raise CalendarMistake(f"{text[:40]!r} is not a duration like PT4H or P1D", line)
    weeks, days, hours, minutes, seconds = (int(group or 0) for group in found.groups())
    wall = timedelta(weeks=weeks, days=days)
    elapsed = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if wall + elapsed > _LONGEST:
        raise CalendarMistake(f"the duration {text[:40]} is longer than ten years", line)
    return Length(wall, elapsed)


def parse_rule(given: Property) -> Rule:
    """Return an RRULE. Raises CalendarMistake for one that is wrong or repeats too often."""
    parts: dict[str, str] = {}
    for part in given.value.strip().strip(";").upper().split(";"):
        key, equals, value = part.partition("=")
        if not equals or key in parts:
            raise CalendarMistake(f"{part[:40]!r} in the RRULE is a duplicate or has no value", given.line)
        parts[key] = value
    try:
        return _rule(parts)
    except ValueError as error:
        raise CalendarMistake(str(error), given.line) from error


def _rule(parts: dict[str, str]) -> Rule:
    frequency = _frequency(parts.pop("FREQ", ""))
    lists = {field: _numbers(parts.pop(key, ""), key) for key, (field, *_) in _LISTS.items()}
    days = _by_day(parts.pop("BYDAY", ""), frequency)
    week_start = parts.pop("WKST", "MO")
    if week_start not in _DAY_CODES:
        raise ValueError(f"WKST={week_start[:40]} is not a day like MO")
    if "COUNT" in parts and "UNTIL" in parts:
        raise ValueError("the RRULE has both COUNT and UNTIL; keep one of them")
    count = _number(parts.pop("COUNT"), "COUNT", _MOST_COUNT) if "COUNT" in parts else None
    interval = _number(parts.pop("INTERVAL", "1"), "INTERVAL", 1000)
    until = _until(parts.pop("UNTIL", ""))
    if parts:
        raise ValueError(f"the RRULE has the unknown part {min(parts)[:40]}")
    rule = Rule(frequency, interval, count, until, _DAY_CODES.index(week_start), days=days, **lists)
    if rule.starts_a_day > _MOST_STARTS:
        raise ValueError(
            f"the RRULE starts {count_of(rule.starts_a_day, 'time')} a day; at most {_MOST_STARTS} are "
            f"supported"
        )
    return rule


def _frequency(text: str) -> Frequency:
    if text in ("HOURLY", "MINUTELY", "SECONDLY"):
        raise ValueError(
            f"FREQ={text} repeats too often; write FREQ=DAILY, and the times of day as BYHOUR and BYMINUTE"
        )
    if text not in Frequency.__members__:
        raise ValueError(f"FREQ={text[:40]} is not one of {', '.join(Frequency.__members__)}")
    return Frequency[text]


def _number(text: str, key: str, most: int) -> int:
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= most:
        raise ValueError(f"{key}={text[:40]} is not a whole number from 1 to {most}")
    return int(text)


def _numbers(text: str, key: str) -> tuple[int, ...]:
    if not text:
        return ()
    _, least, greatest, negative = _LISTS[key]
    found = set()
    for part in text.split(","):
        number = int(part) if _NUMBER.fullmatch(part) else None
        size = abs(number) if number is not None and negative else number
        if number is None or size is None or not least <= size <= greatest:
            raise ValueError(f"{key}={part[:40]} is not a whole number from {least} to {greatest}")
        found.add(number)
    return tuple(sorted(found))


def _by_day(text: str, frequency: Frequency) -> tuple[tuple[int, int], ...]:
    found = set()
    for part in text.split(",") if text else ():
        day = _BY_DAY.fullmatch(part.strip())
        number = int(day[1] or 0) if day is not None else 0
        if day is None or abs(number) > 53 or (day[1] and not number):
            raise ValueError(f"BYDAY={part[:40]} is not a day like MO, 1SA or -1FR")
        if number and frequency in (Frequency.WEEKLY, Frequency.DAILY):
            raise ValueError(f"BYDAY={part[:40]} with a number needs FREQ=MONTHLY or FREQ=YEARLY")
        found.add((_DAY_CODES.index(day[2]), number))
    return tuple(sorted(found))


def _until(text: str) -> datetime | None:
    if not text:
        return None
    year = text[:4]
    if year.isdigit() and int(year) > _LAST_YEAR:
        return None  # some programs write the year 9999 for no end
    if _DATE.fullmatch(text):
        # The last day on which it may start.
        return datetime.combine(parse_date(text, 0), time(23, 59, 59))
    if text.endswith("Z"):
        return parse_wall(text[:-1], 0).replace(tzinfo=UTC)
    return parse_wall(text, 0)
