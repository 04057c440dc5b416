"""Moments as text: RFC 3339 as Kubernetes writes it, RFC 1123 as Azure does; everything aware, in UTC.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

from reconciler.model import limits


def to_text(moment: datetime) -> str:
    """Return an aware moment as `2026-11-21T03:04:05Z`, cut to whole seconds as Kubernetes does."""
    # isoformat is three times as fast as strftime, and a record has a dozen moments.
    return f"{moment.astimezone(UTC).isoformat()[:19]}Z"


def to_micro_text(moment: datetime) -> str:
    """Return an aware moment with microseconds, as `metav1.MicroTime` wants it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    """Parse RFC 3339 or RFC 1123 into UTC; a moment without a time zone is refused.

    A wrong weekday is ignored: Azure's own documentation has one (scheduled-events.md, "Mon, 11 Apr
    2026"). Raises ValueError for any other text, and for a moment that is not from 2000 to 2100.
    """
    return _parsed(limits.moment_text(text.strip()))


# The few moments of a case are read in each pass, and each of them stands in several places.
@lru_cache(maxsize=4096)
def _parsed(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise ValueError(f"not a moment: {text!r}") from error
    if moment.tzinfo is None:
        raise ValueError(f"a moment without a time zone: {text!r}")
    try:
        return limits.moment(moment)
    except ValueError as error:
        raise ValueError(f"too far away to be meant: {text!r}") from error


def has_come(moment: datetime | None, now: datetime) -> bool:
    """Whether a moment is `now` or earlier (both aware). None never comes."""
    return moment is not None and moment <= now


def shifted(moment: datetime, by: timedelta) -> datetime:
    """Return an aware moment plus a duration, or the first or last moment of the calendar beyond that."""
    try:
        return moment + by
    except OverflowError:
        zone = moment.tzinfo
        return datetime.max.replace(tzinfo=zone) if by > timedelta() else datetime.min.replace(tzinfo=zone)
