"""What is said of a request without an answer. A library's message may have the URL, which may be secret."""

from __future__ import annotations

import urllib3

from reconciler.model import limits

_LONGEST = 300


def in_words(error: Exception) -> str:
    """Return in words why there is no answer, without the message of the library."""
    if isinstance(error, urllib3.exceptions.SSLError):
        return "no TLS connection"
    if isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.NameResolutionError):
        return "no connection"
    if isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError):
        return "no answer in time"
    return "the connection was cut"


def cause_of(error: Exception) -> str:
    """Return the message of what is behind the error, in one line, for a URL that is no secret."""
    cause = getattr(error, "reason", None) or error
    return limits.text(" ".join(str(cause).split()) or type(cause).__name__, _LONGEST)
