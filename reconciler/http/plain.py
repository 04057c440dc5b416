"""The header Retry-After (RFC 9110, section 10.2.3), and what the references of a secret name.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path

LONGEST_WAIT = 3600.0
"""The longest wait in seconds that a server may ask for: a wait without end would stop everything."""


def retry_after(text: str | None, wall: Callable[[], float] = time.time) -> float | None:
    """Return the wait in seconds that the header's value asks for, None if there is no readable value.

    The value is a number of seconds or an HTTP date. `wall` (Unix time) turns a date into a wait; a date in
    the past is a wait of 0, and a longer wait than `LONGEST_WAIT` is that.
    """
    text = (text or "").strip()
    if not text:
        return None
    if text.isdecimal():
        return min(float(text), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(text)
        # A date without a zone is UTC; datetime would take it for local time.
        moment = (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp()
        return min(max(0.0, moment - wall()), LONGEST_WAIT)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


class SecretMissing(Exception):
    """A reference of a secret leads nowhere; the message has no secret in it."""


def from_environment(name: str) -> str:
    """Return a variable; SecretMissing if it is not set, or empty."""
    found = os.environ.get(name)
    if not found:
        raise SecretMissing(f"the environment has no {name}")
    return found


def from_file(path: str, most: int) -> bytes:
    """Return the first bytes of a file, `most` at most; SecretMissing if it can't be read.

    Call it for each use: Kubernetes renews the files of a Secret.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise SecretMissing(f"{path} can't be read: {error.strerror or type(error).__name__}") from error
