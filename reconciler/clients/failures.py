"""What is said of a request without an answer. A library's own message has the URL, which may be a secret."""

from __future__ import annotations

import urllib3


def in_words(error: Exception) -> str:
    """Return in words why there is no answer, without the message of the library."""
    if isinstance(error, urllib3.exceptions.SSLError):
        return "no TLS connection"
    if isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.NameResolutionError):
        return "no connection"
    if isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError):
        return "no answer in time"
    return "the connection was cut"
