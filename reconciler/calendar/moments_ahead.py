"""Moments in the future, as a person gives them on a command line."""

from __future__ import annotations

from datetime import datetime, tzinfo

from reconciler.calendar.formatting import format_local
from reconciler.calendar.values import literal, parse_duration, parse_moment, to_utc
from reconciler.model import limits
from reconciler.model.moments import shifted


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
