"""The address of the API server, and our identity."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import urllib3
from msgspec import Struct
from urllib3.connection import HTTPConnection

POOL = 64
"""Connections that are kept open: parallel evictions, and one more for the watch of every drain."""

# A watch whose server disappears without a word would otherwise be noticed by its timeout alone. The numbers
# are those of client-go (k8s.io/client-go, transport): probe after 30 s, every 15 s, 9 times.
KEEP_ALIVE = (
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 9))
        if hasattr(socket, name)
    ),
)


class ApiAccess(Struct, frozen=True):
    """The server's URL without a trailing slash, the pool of connections to it, and our identity.

    `authorization` returns the value of the Authorization header, None if a client certificate or nothing
    identifies us. It may be slow, and it raises Unauthorized if the credentials cannot be refreshed.
    `authority` is the file of the certificate authority, which new connections read, if it is a file.
    """

    host: str
    pool: urllib3.PoolManager
    authorization: Callable[[], str | None]
    authority: Path | None = None
