"""Reads the values of iCalendar properties (RFC 5545): dates, times, durations and rules."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from reconciler.calendar.ical_lines import CalendarMistake, Property
from reconciler.calendar.recurrence import Frequency, Length, Rule

_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_TIME = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})")
_DURATION = re.compile(
    r"\+?P(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?"
    r"(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9})S)?)?"
)
_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BY_DAY = re.compile(rf"([+-]?[0-9]{{1,2}})?({'|'.join(_DAYS)})")
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
    days = _days(parts.pop("BYDAY", ""), frequency)
    week_start = parts.pop("WKST", "MO")
    if week_start not in _DAYS:
        raise ValueError(f"WKST={week_start[:40]} is not a day like MO")
    if "COUNT" in parts and "UNTIL" in parts:
        raise ValueError("the RRULE has both COUNT and UNTIL; keep one of them")
    count = _number(parts.pop("COUNT"), "COUNT", _MOST_COUNT) if "COUNT" in parts else None
    interval = _number(parts.pop("INTERVAL", "1"), "INTERVAL", 1000)
    until = _until(parts.pop("UNTIL", ""))
    if parts:
        raise ValueError(f"the RRULE has the unknown part {min(parts)[:40]}")
    rule = Rule(
        frequency,
        interval,
        count,
        until,
        _DAYS.index(week_start),
        days=days,
        **lists,
    )
    if rule.starts_a_day > _MOST_STARTS:
        raise ValueError(
            f"the RRULE starts {rule.starts_a_day} times a day; at most {_MOST_STARTS} are supported"
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


def _days(text: str, frequency: Frequency) -> tuple[tuple[int, int], ...]:
    found = set()
    for part in text.split(",") if text else ():
        day = _BY_DAY.fullmatch(part.strip())
        number = int(day[1] or 0) if day is not None else 0
        if day is None or abs(number) > 53 or (day[1] and not number):
            raise ValueError(f"BYDAY={part[:40]} is not a day like MO, 1SA or -1FR")
        if number and frequency in (Frequency.WEEKLY, Frequency.DAILY):
            raise ValueError(f"BYDAY={part[:40]} with a number needs FREQ=MONTHLY or FREQ=YEARLY")
        found.add((_DAYS.index(day[2]), number))
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
