"""Formats moments for people: weekday, date, time, and the name of the zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo


def format_local(moment: datetime, zone: tzinfo = UTC) -> str:
    """Write a moment in `zone`, as `Mon 2026-11-23 22:00 CET (Europe/Berlin)`.

    The abbreviation says which 02:30 is meant in the night in which it comes twice.
    """
    local = moment.astimezone(zone)
    # Not %a: a report doesn't change its language with the machine's locale.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[local.weekday()]
    clock = local.strftime("%H:%M:%S" if local.second else "%H:%M")
    name, short = str(getattr(zone, "key", "UTC")), local.tzname() or ""
    where = name if short in (name, "") else f"{short} ({name})"
    return f"{day} {local.date().isoformat()} {clock} {where}"
