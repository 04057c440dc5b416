"""One HTTP exchange with a deadline for the whole of it.

The node agent imports this file, so it needs nothing but the standard library. http.client uses no proxy,
which is what IMDS requires.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.http.plain import retry_after

LARGEST_BODY = 512 * 1024
"""In bytes. It is far above any Node and any list of events. Decoded JSON can take thirty times as much
memory, and the agent has 48 MiB."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer. `retry_after` is the wait in seconds that it asks for, None if it asks for none."""

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

    Raises OSError (TimeoutError is one) or http.client.HTTPException if no complete answer came.
    """
    ends = time.monotonic() + timeout
    connection.timeout = timeout
    response = None
    try:
        connection.connect()
        # Kept here, because the connection drops its socket when it hands it to the answer.
        socket = connection.sock
        connection.request(method, path, body, {**headers, "Connection": "close"})
        socket.settimeout(_left(ends))
        response = connection.getresponse()
        expected = response.length  # None if the body is chunked or ends with the connection
        received = bytearray()
        while expected is None or len(received) < expected:
            # A socket's timeout covers one read; a server that trickles bytes would hold us forever.
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
            response.status, response.reason, bytes(received), retry_after(response.getheader("Retry-After"))
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
