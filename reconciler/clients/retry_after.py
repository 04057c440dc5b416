"""The header Retry-After (RFC 9110, section 10.2.3).

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime


def retry_after(text: str | None, wall: Callable[[], float] = time.time) -> float | None:
    """Return the wait in seconds that the header's value asks for, None if there is no readable value.

    The value is a number of seconds or an HTTP date. `wall` (Unix time) turns a date into a wait; a date in
    the past is a wait of 0.
    """
    text = (text or "").strip()
    if not text:
        return None
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
        # A date without a zone is UTC; datetime would take it for local time.
        return max(0.0, (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() - wall())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
