"""Durations, days, times of day, moments, zones, limits: from the text of the settings, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

# Longer is a slip, and arithmetic with moments would leave what `datetime` can hold.
_LONGEST = timedelta(days=3650)

_DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
_TIME = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?(?::([0-9]{2}))? ?(am|pm)?", re.IGNORECASE)
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def parse_duration(value: object) -> timedelta:
    """Read `30s`, `10m`, `1h30m`, `1d`; the number 0 needs no unit. Raises ValueError in words."""
    if isinstance(value, timedelta):
        length = value
    elif isinstance(value, int) and not isinstance(value, bool):
        if value != 0:
            raise ValueError(f"{value} of what? Write a unit: {abs(value)}s, {abs(value)}m, {abs(value)}h")
        length = timedelta()
    elif isinstance(value, str):
        text = value.strip()
        if text == "0":
            return timedelta()
        if text.startswith("-"):
            raise ValueError(f"{text} is negative; a duration is 0s or longer")
        match = _DURATION.fullmatch(text)
        if not text or match is None:
            raise ValueError(f"{shown(value)} is not a duration; write it like 30s, 10m, 4h, 1d or 1h30m")
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        try:
            length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        except OverflowError:
            length = _LONGEST * 2
    else:
        raise ValueError(f"{shown(value)} is not a duration; write it like 30s, 10m, 4h, 1d or 1h30m")
    if length < timedelta():
        raise ValueError(f"{format_duration(-length)} before nothing: a duration is 0s or longer")
    if length > _LONGEST:
        raise ValueError("is longer than ten years (3650d)")
    return length


def format_duration(length: timedelta) -> str:
    """Write a duration as `parse_duration` reads it, whole seconds: `1h30m`, `0s`."""
    seconds = int(length.total_seconds())
    if seconds == 0:
        return "0s"
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    return "".join(f"{n}{unit}" for n, unit in ((day, "d"), (hour, "h"), (minute, "m"), (second, "s")) if n)


def shown(value: object) -> str:
    """Tell a value of the file as its author wrote it, cut to a readable length."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _parse_day(text: str) -> int:
    """Read one day, Monday 0: two letters or more of its name, or cron's digit (0 and 7 are Sunday)."""
    if re.fullmatch("[0-7]", text):
        return (int(text) - 1) % 7
    if len(text) >= 2:
        for number, name in enumerate(_DAYS):
            if name.startswith(text.lower()):
                return number
    raise ValueError(f"{text!r} is not a day; write it like Mon, tue or Friday, or a range like Mon-Thu")


def parse_days(value: object) -> frozenset[int]:
    """Read a list of days and ranges (or one text with commas) into weekdays, Monday 0.

    A range may run over the week's end: `Sun-Fri`, `Sat-Mon`. Raises ValueError in words, one day at a time.
    """
    if isinstance(value, frozenset):
        return value
    items: list[object]
    if isinstance(value, str):
        items = list(value.split(","))
    elif isinstance(value, list | tuple):
        items = [part for item in value for part in (item.split(",") if isinstance(item, str) else [item])]
    else:
        items = [value]
    days: set[int] = set()
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise ValueError(f"{shown(item)} is not a day; write it like Mon, or a range like Mon-Thu")
        text = str(item).strip()
        if not text:
            continue
        first, dash, last = text.partition("-")
        if not dash:
            days.add(_parse_day(text))
            continue
        start, end = _parse_day(first.strip()), _parse_day(last.strip())
        # `0-7` is cron's whole week, which modulo 7 would make one Sunday of.
        days.update(range(7) if (first.strip(), last.strip()) == ("0", "7") else ())
        days.update((start + step) % 7 for step in range((end - start) % 7 + 1))
    if not days:
        raise ValueError("names no day; leave the key out for every day")
    return frozenset(days)


def format_days(days: frozenset[int]) -> str:
    """Write weekdays with their runs joined: `Mon-Thu, Sat`; all seven are `every day`."""
    if len(days) == 7:
        return "every day"
    runs: list[list[int]] = []
    # Start after a gap, so that Sat-Mon stays one run.
    first = next(day for day in range(7) if day in days and (day - 1) % 7 not in days) if days else 0
    for day in ((first + step) % 7 for step in range(7)):
        if day not in days:
            continue
        if runs and (runs[-1][-1] + 1) % 7 == day:
            runs[-1].append(day)
        else:
            runs.append([day])
    runs.sort(key=lambda run: run[0])
    return ", ".join(
        DAY_NAMES[run[0]] if len(run) == 1 else f"{DAY_NAMES[run[0]]}-{DAY_NAMES[run[-1]]}" for run in runs
    )


@dataclass(frozen=True, slots=True, order=True)
class TimeOfDay:
    """A wall-clock time in seconds since midnight, 0 to 86,400: 24:00 is the day's end."""

    seconds: int

    def __str__(self) -> str:
        """Write `22:00`, or `22:00:30` where there are seconds."""
        minutes, second = divmod(self.seconds, 60)
        text = f"{minutes // 60:02d}:{minutes % 60:02d}"
        return f"{text}:{second:02d}" if second else text

    def on(self, day: date, zone: tzinfo) -> datetime:
        """Return this time on a local day as a moment in UTC.

        A time that the clocks skip moves forward by what they skip; of a time that comes twice, it is the
        first. Both are what `fold=0` means.
        """
        days, rest = divmod(self.seconds, 86_400)
        wall = datetime.combine(day, datetime.min.time(), tzinfo=zone) + timedelta(days=days, seconds=rest)
        return wall.astimezone(UTC)


MIDNIGHT = TimeOfDay(0)
DAY_END = TimeOfDay(86_400)


def parse_time(value: object) -> TimeOfDay:
    """Read `22:00`, `22:00:30`, `9am`, `11:30pm` or `24:00`. Raises ValueError in words."""
    if isinstance(value, TimeOfDay):
        return value
    wrong = ValueError(f'{shown(value)} is not a time of day; write it like "22:00", 9am or 11:30pm')
    match = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise wrong
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    half = (match[4] or "").lower()
    if not half and match[2] is None:
        raise ValueError(f'{shown(value)}: in the morning or at night? Write it like "{hour:02d}:00"')
    if minute > 59 or second > 59 or hour > 24:
        raise wrong
    if half:
        # 00:01am is kured's spelling, and can mean only one thing; 13:00pm is more likely a slip.
        if hour > 12 or (hour == 0 and half == "pm"):
            raise wrong
        hour = hour % 12 + (12 if half == "pm" else 0)
    total = hour * 3600 + minute * 60 + second
    if total > 86_400:
        raise wrong
    return TimeOfDay(total)


def parse_moment(value: object) -> datetime:
    """Read a date (its 00:00), a date and time, or RFC 3339 with an offset.

    What names no offset stays without a zone: the settings' zone is not known here. Raises ValueError.
    """
    if isinstance(value, datetime):
        return value
    wrong = ValueError(
        f"{shown(value)} is not a moment; write it like 2026-11-26, 2026-11-26T06:00 or "
        "2026-11-26T06:00:00+01:00"
    )
    match = _MOMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise wrong
    day, time, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time or '00:00'}{(offset or '').upper()}")
    except ValueError as error:
        raise ValueError(f"{shown(value)} is not in the calendar: {error}") from error
    # A day of room on either side, so that no conversion of zones leaves what `datetime` can hold.
    if not 1900 <= moment.year <= 9000:
        raise ValueError(f"{shown(value)} is too far away to be meant")
    return moment


def parse_time_or_moment(value: object) -> TimeOfDay | datetime:
    """Read what a `start` or an `end` may be: a time of day, or a moment with its date."""
    if isinstance(value, TimeOfDay | datetime):
        return value
    if isinstance(value, str) and re.match(r"\s*[0-9]{4}-", value):
        return parse_moment(value)
    try:
        return parse_time(value)
    except ValueError as error:
        raise ValueError(f"{error}, or with its date, like 2026-11-26T06:00") from error


def to_utc(moment: datetime, zone: tzinfo) -> datetime:
    """Return a moment in UTC, reading one without an offset in `zone` (as `TimeOfDay.on` does)."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def format_moment(value: TimeOfDay | datetime) -> str:
    """Write what `parse_time_or_moment` read, as short as it can be."""
    if isinstance(value, TimeOfDay):
        return str(value)
    if value.tzinfo is None and (value.hour, value.minute, value.second) == (0, 0, 0):
        return value.date().isoformat()
    return value.isoformat(timespec="seconds" if value.second else "minutes")


def parse_zone(value: object) -> ZoneInfo:
    """Read the name of an IANA time zone. Raises ValueError with the names that come near."""
    if isinstance(value, ZoneInfo):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError(f"{shown(value)} is not a time zone; write its IANA name, like Europe/Berlin")
    try:
        zone = ZoneInfo(value)
        # Debian keeps `localtime` and `posixrules` among the zones: the machine's own, not anybody's.
        if "/" in value or value.lower() not in ("localtime", "posixrules", "factory"):
            return zone
    except (KeyError, ValueError, OSError):
        pass
    raise ValueError(f"{shown(value)} is not an IANA time zone{near(value, _zones())}")


def _zones() -> list[str]:
    from zoneinfo import available_timezones

    return sorted(available_timezones())


def near(word: str, known: list[str]) -> str:
    """Return `; did you mean X?` for the known word that comes nearest, or nothing."""
    import difflib

    lowered = {name.lower(): name for name in reversed(known)}
    found = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return f"; did you mean {lowered[found[0]]}?" if found else ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of nodes, or a percentage of them, rounded up so that 1 % of 5 nodes is one."""

    amount: int
    percent: bool = False

    def of(self, total: int) -> int:
        """Return how many of `total` nodes this is; a plain number is itself, however many there are."""
        return -(-total * self.amount // 100) if self.percent else self.amount

    def __str__(self) -> str:
        """Write `3` or `10%`."""
        return f"{self.amount}%" if self.percent else str(self.amount)


def parse_limit(value: object) -> Limit:
    """Read a number of nodes or a percentage of them, 0 to 100. Raises ValueError in words."""
    if isinstance(value, Limit):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Limit(value)
    match = re.fullmatch(r"([0-9]{1,9})(%?)", value.strip()) if isinstance(value, str) else None
    if match is None or (match[2] and int(match[1]) > 100):
        raise ValueError(f"{shown(value)} is not a number of nodes, like 3, or a percentage, like 10%")
    return Limit(int(match[1]), percent=bool(match[2]))
