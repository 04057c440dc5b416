"""One HTTP exchange with nothing but the standard library, ended by the clock and not by the other side.

The node agent imports this file, so it needs nothing but the standard library. http.client knows nothing of
proxies, which is what IMDS asks for.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LARGEST_BODY = 4 * 1024 * 1024
"""Bytes. Far above any Node and any list of events; a limit, since the agent has little memory."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What the other side said. `retry_after` is its wish in seconds, None where it has none."""

    status: int
    reason: str
    body: bytes
    retry_after: float | None


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout: float,
) -> HttpAnswer:
    """Send one request and read the whole answer within `timeout` seconds; closes the connection.

    Raises OSError (TimeoutError is one) or http.client.HTTPException where no whole answer came.
    """
    ends = time.monotonic() + timeout
    connection.timeout = timeout
    response = None
    try:
        connection.connect()
        # Kept, because the connection lets go of it when it hands it to the answer.
        socket = connection.sock
        connection.request(method, path, body, {**headers, "Connection": "close"})
        socket.settimeout(_left(ends))
        response = connection.getresponse()
        expected = response.length  # None for a body that is chunked, or that the end of the connection ends
        received = bytearray()
        while expected is None or len(received) < expected:
            # A socket's timeout is for one read: who sends a byte now and then would hold us for ever.
            socket.settimeout(_left(ends))
            chunk = response.read1(65536)
            if not chunk:
                break
            received += chunk
            if len(received) > LARGEST_BODY:
                raise http.client.HTTPException(f"an answer of more than {LARGEST_BODY} bytes")
        if expected is not None and len(received) < expected:
            raise http.client.IncompleteRead(bytes(received), expected - len(received))
        return HttpAnswer(
            response.status,
            response.reason,
            bytes(received),
            _retry_after(response.getheader("Retry-After")),
        )
    finally:
        if response is not None:
            response.close()
        connection.close()


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _retry_after(value: str | None) -> float | None:
    """Read a Retry-After header, in seconds or as a date."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
        return max(0.0, (until - datetime.fromtimestamp(time.time(), UTC)).total_seconds())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
