"""What is said of a request that failed, and of an answer that can't be read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

import msgspec
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


Reporter = Callable[[str, str, int | None, float, str], None]
"""Gets the API, the HTTP method, the status of the answer (None without one), the seconds until then, and the
path with its query. The path may have a secret in it.
"""

_reporters: list[Reporter] = []


def report_requests(to: Reporter) -> Callable[[], None]:
    """Report every request from now on, from the thread that sends it; return what ends it."""
    _reporters.append(to)
    return lambda: _reporters.remove(to)


def report(api: str, method: str, status: int | None, seconds: float, path: str = "") -> None:
    """Report one request. Raises nothing."""
    for to in _reporters:
        with suppress(Exception):
            to(api, method, status, seconds, path)


_Kind = TypeVar("_Kind")

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_making = Lock()


def decode_json(kind: type[_Kind], body: bytes | msgspec.Raw) -> _Kind:
    """Decode JSON into a type.

    Raises msgspec.DecodeError if it is not JSON or has another shape, UnicodeDecodeError if a text is not
    UTF-8, RecursionError if it is nested too deep.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        with _making:
            decoder = _decoders.setdefault(kind, msgspec.json.Decoder(kind))
    decoded: _Kind = decoder.decode(body)
    return decoded
