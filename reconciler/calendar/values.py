"""Durations, days, times of day, moments, zones and limits: how they are read, and written for people."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.model import limits
from reconciler.model.moments import shifted

# Longer durations are mistakes, and would overflow `datetime` in calculations.
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
    """Parse `30s`, `10m`, `1h30m`, `1d`, or 0. Raises ValueError with a message for the user."""
    if isinstance(value, timedelta):
        length = value
    elif isinstance(value, int) and not isinstance(value, bool):
        if value != 0:
            raise ValueError(f"{value} has no unit; write {abs(value)}s, {abs(value)}m or {abs(value)}h")
        length = timedelta()
    elif isinstance(value, str):
        text = value.strip()
        if text == "0":
            return timedelta()
        if text.startswith("-"):
            raise ValueError(f"{text} is negative; a duration is 0s or longer")
        match = _DURATION.fullmatch(text)
        if not text or match is None:
            raise ValueError(f"{literal(value)} is not a duration; write it like 30s, 10m, 4h, 1d or 1h30m")
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        try:
            length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        except OverflowError:
            length = _LONGEST * 2
    else:
        raise ValueError(f"{literal(value)} is not a duration; write it like 30s, 10m, 4h, 1d or 1h30m")
    if length < timedelta():
        raise ValueError(f"-{format_duration(-length)} is negative; a duration is 0s or longer")
    if length > _LONGEST:
        raise ValueError("is longer than ten years (3650d)")
    return length


def format_duration(length: timedelta) -> str:
    """Return a duration in whole seconds as `parse_duration` reads it: `1h30m`, `0s`."""
    seconds = int(length.total_seconds())
    if seconds == 0:
        return "0s"
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    return "".join(f"{n}{unit}" for n, unit in ((day, "d"), (hour, "h"), (minute, "m"), (second, "s")) if n)


def literal(value: object) -> str:
    """Return a value as the author of the file wrote it, at most 60 characters."""
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
    """Parse one day, Monday 0: at least two letters of its name, or cron's digit (Sunday is 0 or 7)."""
    if re.fullmatch("[0-7]", text):
        return (int(text) - 1) % 7
    if len(text) >= 2:
        for number, name in enumerate(_DAYS):
            if name.startswith(text.lower()):
                return number
    raise ValueError(f"{text!r} is not a day; write it like Mon, tue or Friday, or a range like Mon-Thu")


def parse_days(value: object) -> frozenset[int]:
    """Parse a list of days and ranges, or one text with commas, into weekdays, Monday 0.

    A range may continue into the next week: `Sun-Fri`, `Sat-Mon`. Raises ValueError with a message for the
    user about the first wrong day.
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
            raise ValueError(f"{literal(item)} is not a day; write it like Mon, or a range like Mon-Thu")
        text = str(item).strip()
        if not text:
            continue
        first, dash, last = text.partition("-")
        if not dash:
            days.add(_parse_day(text))
            continue
        start, end = _parse_day(first.strip()), _parse_day(last.strip())
        # In cron, `0-7` is the whole week. Modulo 7 it would be a single Sunday.
        days.update(range(7) if (first.strip(), last.strip()) == ("0", "7") else ())
        days.update((start + step) % 7 for step in range((end - start) % 7 + 1))
    if not days:
        raise ValueError("has no days; remove the key for every day")
    return frozenset(days)


def format_days(days: frozenset[int]) -> str:
    """Return weekdays as text with ranges: `Mon-Thu, Sat`. All seven are `every day`."""
    if len(days) == 7:
        return "every day"
    runs: list[list[int]] = []
    # Start after a gap, so that Sat-Mon stays one range.
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


class TimeOfDay(Struct, frozen=True, order=True):
    """A wall-clock time in seconds since midnight, 0 to 86,400 (24:00, the end of the day)."""

    seconds: int

    def __str__(self) -> str:
        """Return `22:00`, or `22:00:30` with seconds."""
        minutes, second = divmod(self.seconds, 60)
        text = f"{minutes // 60:02d}:{minutes % 60:02d}"
        return f"{text}:{second:02d}" if second else text

    def on(self, day: date, zone: tzinfo) -> datetime:
        """Return this time on a local day as a moment in UTC.

        A time that the clocks skip moves forward by the skipped time. When a time occurs twice, the first
        one counts. This is the meaning of `fold=0`.
        """
        days, rest = divmod(self.seconds, 86_400)
        wall = datetime.combine(day, datetime.min.time(), tzinfo=zone) + timedelta(days=days, seconds=rest)
        return wall.astimezone(UTC)


MIDNIGHT = TimeOfDay(0)
DAY_END = TimeOfDay(86_400)


def parse_time(value: object) -> TimeOfDay:
    """Parse `22:00`, `22:00:30`, `9am`, `11:30pm` or `24:00`. Raises ValueError."""
    if isinstance(value, TimeOfDay):
        return value
    wrong = ValueError(f'{literal(value)} is not a time of day; write it like "22:00", 9am or 11:30pm')
    match = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise wrong
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    half = (match[4] or "").lower()
    if not half and match[2] is None:
        raise ValueError(f'{literal(value)} may be morning or evening; write it like "{hour:02d}:00"')
    if minute > 59 or second > 59 or hour > 24:
        raise wrong
    if half:
        # kured writes 00:01am, which is unambiguous; 13:00pm is probably a mistake.
        if hour > 12 or (hour == 0 and half == "pm"):
            raise wrong
        hour = hour % 12 + (12 if half == "pm" else 0)
    total = hour * 3600 + minute * 60 + second
    if total > 86_400:
        raise wrong
    return TimeOfDay(total)


def parse_moment(value: object) -> datetime:
    """Parse a date (its 00:00), a date and time, or RFC 3339 with an offset.

    A moment without an offset has no `tzinfo`, because the zone of the settings is not known here. Raises
    ValueError with a message for the user.
    """
    if isinstance(value, datetime):
        return value
    wrong = ValueError(
        f"{literal(value)} is not a moment; write it like 2026-11-26, 2026-11-26T06:00 or "
        "2026-11-26T06:00:00+01:00"
    )
    match = _MOMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise wrong
    day, time, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time or '00:00'}{(offset or '').upper()}")
    except ValueError as error:
        raise ValueError(f"{literal(value)} is not a valid date: {error}") from error
    # With this margin, no conversion between zones overflows `datetime`.
    if not 1900 <= moment.year <= 9000:
        raise ValueError(f"{literal(value)} is not between the years 1900 and 9000")
    return moment


def parse_time_or_moment(value: object) -> TimeOfDay | datetime:
    """Parse a `start` or an `end`: a time of day, or a moment with a date."""
    if isinstance(value, TimeOfDay | datetime):
        return value
    if isinstance(value, str) and re.match(r"\s*[0-9]{4}-", value):
        return parse_moment(value)
    try:
        return parse_time(value)
    except ValueError as error:
        raise ValueError(f"{error}, or with a date, like 2026-11-26T06:00") from error


def to_utc(moment: datetime, zone: tzinfo) -> datetime:
    """Return a moment in UTC. Without an offset, it is in `zone`."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def format_moment(value: TimeOfDay | datetime) -> str:
    """Return the shortest text that `parse_time_or_moment` reads as this value."""
    if isinstance(value, TimeOfDay):
        return str(value)
    if value.tzinfo is None and (value.hour, value.minute, value.second) == (0, 0, 0):
        return value.date().isoformat()
    return value.isoformat(timespec="seconds" if value.second else "minutes")


def parse_zone(value: object) -> ZoneInfo:
    """Parse the name of an IANA time zone. Raises ValueError with a similar name, if there is one."""
    if isinstance(value, ZoneInfo):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError(f"{literal(value)} is not a time zone; write its IANA name, like Europe/Berlin")
    try:
        zone = ZoneInfo(value)
        # Debian has `localtime` and `posixrules` among the zones. They depend on the machine.
        if "/" in value or value.lower() not in ("localtime", "posixrules", "factory"):
            return zone
    except (KeyError, ValueError, OSError):
        pass
    wrong = f"{literal(value)} is not an IANA time zone"
    from zoneinfo import available_timezones

    from reconciler.calendar.zone_names import fixed_offset, meant_by

    if zones := meant_by(value):
        raise ValueError(f"{wrong}; did you mean {' or '.join(zones)}?")
    if fixed := fixed_offset(value):
        raise ValueError(
            f"{wrong}; write the zone of a city, like Europe/Berlin, or {fixed}, whose clocks never change"
        )
    # The similar name of an abbreviation is that of a zone hours away.
    meant = "" if value.isupper() else near(value, sorted(available_timezones()))
    raise ValueError(f"{wrong}{meant or '; write the zone of a city, like Europe/Berlin'}")


def is_fixed(zone: ZoneInfo) -> bool:
    """Whether a zone is no place but an offset with a name that people use of places, such as `EST`."""
    return zone.key in ("EST", "MST", "HST") or (zone.key.startswith("Etc/GMT") and zone.key != "Etc/GMT")


def near(word: str, known: list[str]) -> str:
    """Return `; did you mean X?` with the most similar known word, or an empty text."""
    import difflib

    lowered = {name.lower(): name for name in reversed(known)}
    found = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return f"; did you mean {lowered[found[0]]}?" if found else ""


class Limit(Struct, frozen=True):
    """A number of nodes, or a percentage of them, rounded up: 1 % of 5 nodes is one node."""

    amount: int
    percent: bool = False

    def of(self, total: int) -> int:
        """Return the number of nodes, given `total` nodes. A plain number may exceed the total."""
        return -(-total * self.amount // 100) if self.percent else self.amount

    def __str__(self) -> str:
        """Return `3` or `10%`."""
        return f"{self.amount}%" if self.percent else str(self.amount)


def parse_limit(value: object) -> Limit:
    """Parse a number of nodes, or a percentage from 0 to 100. Raises ValueError."""
    if isinstance(value, Limit):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Limit(value)
    match = re.fullmatch(r"([0-9]{1,9})(%?)", value.strip()) if isinstance(value, str) else None
    if match is None or (match[2] and int(match[1]) > 100):
        raise ValueError(f"{literal(value)} is not a number of nodes, like 3, or a percentage, like 10%")
    return Limit(int(match[1]), percent=bool(match[2]))


_WRITTEN_MOMENT = re.compile(
    r"(?<![\w.+-])\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)(?![\w+-]|:\d)"
)


def format_local(moment: datetime, zone: tzinfo = UTC) -> str:
    """Write a moment in `zone`, as `Mon 2026-11-23 22:00 CET (Europe/Berlin)`.

    The abbreviation says which 02:30 is meant in the night in which it comes twice.
    """
    local = moment.astimezone(zone)
    return f"{_clock(local)} {_where(local, zone)}"


def _where(local: datetime, zone: tzinfo) -> str:
    name, short = str(getattr(zone, "key", "UTC")), local.tzname() or ""
    return name if short in (name, "") else f"{short} ({name})"


def _clock(local: datetime) -> str:
    # Not %a: a report doesn't change its language with the machine's locale.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    clock = local.strftime("%H:%M:%S" if local.second else "%H:%M")
    return f"{day} {local.date().isoformat()} {clock}"


def in_zone(
    line: str, zone: tzinfo = UTC, *, named: bool = True, clock: Callable[[datetime], str] = _clock
) -> str:
    """Return a line for people with its RFC 3339 moments in `zone`, which is named at the first one.

    With `named=False` it is not named, for a page that names it once. A later moment has the abbreviation of
    its own offset if that differs, as in a night in which the clocks change. What is not a moment stays as it
    is. `clock` writes a moment in the zone, without the zone.
    """
    offsets: list[timedelta | None] = []

    def rewritten(found: re.Match[str]) -> str:
        try:
            local = datetime.fromisoformat(found[0].upper()).astimezone(zone)
            offset = local.utcoffset()
            text = clock(local)
            if named and not offsets:
                text = f"{text} {_where(local, zone)}"
            elif offsets and offset != offsets[0]:
                text = f"{text} {local.tzname()}"
        except (ValueError, OverflowError):
            return found[0]
        offsets.append(offset)
        return text

    return _WRITTEN_MOMENT.sub(rewritten, line)


def rounded(length: timedelta) -> str:
    """Return a duration in whole minutes, or in hours if it is long."""
    unit = timedelta(hours=1) if length >= timedelta(days=1) else timedelta(minutes=1)
    return "less than 1m" if length < timedelta(minutes=1) else format_duration(length // unit * unit)


def with_time_left(line: str, now: datetime) -> str:
    """Return a line with the time from `now` to its first RFC 3339 moment behind that: `(in 14m)`."""
    written, moment = _WRITTEN_MOMENT.search(line), first_moment(line)
    if written is None or moment is None:
        return line
    words, rest = time_left(moment, now), line[written.end() :]
    # Within parentheses there are no others.
    return f"{line[: written.end()]}{f', {words}' if rest.startswith(')') else f' ({words})'}{rest}"


_LENGTH = re.compile(r"\d+(?:[dhms](?:\d+[dhms])*| (?:second|minute|hour|day)s?)\b")


def without_times(line: str) -> str:
    """Return a line without its RFC 3339 moments and durations: what is always the same is the same text."""
    return _LENGTH.sub("…", _WRITTEN_MOMENT.sub("…", line))


def first_moment(line: str) -> datetime | None:
    """Return the first RFC 3339 moment of a line, None if it has none."""
    written = _WRITTEN_MOMENT.search(line)
    try:
        return datetime.fromisoformat(written[0].upper()) if written is not None else None
    except (ValueError, OverflowError):
        return None


def time_left(moment: datetime, now: datetime) -> str:
    """Return how far a moment is from `now` (both aware): `in 14m`, `3h ago` or `now`."""
    left = moment - now
    return f"in {rounded(left)}" if left > timedelta() else f"{rounded(-left)} ago" if left else "now"


def parse_ahead(text: str, zone: tzinfo, now: datetime, *, instead: str = "") -> datetime:
    """Return the moment in UTC: `2h` or `+2h` from `now` (aware), a date with or without a time, or RFC 3339.

    A date is in `zone`.

    Raises ValueError, with what to change, for any other text and for a moment that is not in the future.
    `instead` says what else can be done about the latter.
    """
    text = text.strip()
    try:
        if text.startswith("+") or (text and _DURATION.fullmatch(text)):
            moment = shifted(now, parse_duration(text.removeprefix("+")))
        else:
            moment = to_utc(parse_moment(text), zone)
    except ValueError as error:
        raise ValueError(f"{error}; or 2h from now") from error
    # Annotations have whole seconds.
    moment = moment.replace(microsecond=0)
    if not limits.is_moment(moment):
        raise ValueError(f"{literal(text)} is not from 2000 to 2100")
    if moment <= now:
        hint = f"; {instead}" if instead else ""
        raise ValueError(f"{format_local(moment, zone)} is not in the future{hint}")
    return moment
