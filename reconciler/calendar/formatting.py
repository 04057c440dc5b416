"""How moments and lengths of time are written for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from reconciler.calendar.values import literal, parse_duration, parse_moment, to_utc
from reconciler.model import limits
from reconciler.model.moments import shifted

_MOMENT = re.compile(
    r"(?<![\w.+-])\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)(?![\w+-]|:\d)"
)


def format_local(moment: datetime, zone: tzinfo = UTC) -> str:
    """Write a moment in `zone`, as `Mon 2026-11-23 22:00 CET (Europe/Berlin)`.

    The abbreviation says which 02:30 is meant in the night in which it comes twice.
    """
    local = moment.astimezone(zone)
    name, short = str(getattr(zone, "key", "UTC")), local.tzname() or ""
    where = name if short in (name, "") else f"{short} ({name})"
    return f"{_clock(local)} {where}"


def in_zone(line: str, zone: tzinfo = UTC, *, named: bool = True) -> str:
    """Return a line for people with its RFC 3339 moments in `zone`, which is named at the first one.

    With `named=False` it is not named, for a page that names it once. A later moment has the abbreviation of
    its own offset if that differs, as in a night in which the clocks change. What is not a moment stays as it
    is.
    """
    offsets: list[timedelta | None] = []

    def rewritten(found: re.Match[str]) -> str:
        try:
            local = datetime.fromisoformat(found[0].upper()).astimezone(zone)
            offset = local.utcoffset()
            if named and not offsets:
                text = format_local(local, zone)
            else:
                same = not offsets or offset == offsets[0]
                text = _clock(local) + ("" if same else f" {local.tzname()}")
        except (ValueError, OverflowError):
            return found[0]
        offsets.append(offset)
        return text

    return _MOMENT.sub(rewritten, line)


def _clock(local: datetime) -> str:
    # Not %a: a report doesn't change its language with the machine's locale.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    clock = local.strftime("%H:%M:%S" if local.second else "%H:%M")
    return f"{day} {local.date().isoformat()} {clock}"


def parse_ahead(text: str, zone: tzinfo, now: datetime, *, instead: str = "") -> datetime:
    """Return the moment in UTC: `+2h` from `now` (aware), a date, a date and time in `zone`, or RFC 3339.

    Raises ValueError, with what to change, for any other text and for a moment that is not in the future.
    `instead` says what else can be done about the latter.
    """
    text = text.strip()
    try:
        if text.startswith("+"):
            moment = shifted(now, parse_duration(text[1:]))
        else:
            moment = to_utc(parse_moment(text), zone)
    except ValueError as error:
        raise ValueError(f"{error}; or +2h from now") from error
    # Annotations have whole seconds.
    moment = moment.replace(microsecond=0)
    if not limits.is_moment(moment):
        raise ValueError(f"{literal(text)} is not from 2000 to 2100")
    if moment <= now:
        hint = f"; {instead}" if instead else ""
        raise ValueError(f"{format_local(moment, zone)} is not in the future{hint}")
    return moment
