"""Short moments for a table whose head names the zone."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from reconciler.calendar.values import DAY_NAMES

_WEEKDAY_FOR = timedelta(days=20)
"""For how long a weekday and the day of the month are enough."""

_YEAR_FROM = timedelta(days=300)
"""From when on the year belongs to a date."""


def day_text(local: datetime, *, far: bool) -> str:
    """Return a local day as `Sun 22`, or as `11-22` if it is far away."""
    return f"{local:%m-%d}" if far else f"{DAY_NAMES[local.weekday()]} {local:%d}"


def moment_text(moment: datetime | None, now: datetime, zone: ZoneInfo) -> str:
    """Return a moment as `Sun 22 22:00`, or as `12-24 22:00` or `2028-01-30` if it is far from `now`.

    A time of day that comes twice has the abbreviation of its offset. None is `unknown`.
    """
    if moment is None:
        return "unknown"
    away = abs(moment - now)
    try:
        local = moment.astimezone(zone)
    except OverflowError:
        return "never"
    if away >= _YEAR_FROM:
        return local.date().isoformat()
    text = f"{day_text(local, far=away >= _WEEKDAY_FOR)} {local:%H:%M}"
    twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    return f"{text} {local.tzname()}" if twice else text
