"""HTTP connections of urllib3 on which an answer has a total time, and a size if one is set.

A socket's timeout covers one read: a server that sends a byte each second would hold us without end, in the
headers too. So the answer is read through a file whose every read waits no longer than what is left.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast
from weakref import WeakSet

from msgspec import Struct
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, PoolManager, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import SSLError
from urllib3.util import connection as addresses
from urllib3.util.ssl_ import create_urllib3_context, resolve_cert_reqs, resolve_ssl_version

from reconciler import USER_AGENT
from reconciler.http.failures import report

# urllib3 takes it that there is no IPv6 if the loopback device had no address of it when urllib3 was loaded.
# The network of a Pod may have one elsewhere, and nothing else.
addresses.HAS_IPV6 = socket.has_ipv6

TOTAL = 60.0
"""Seconds for one answer where nothing else is set."""

LARGEST = 16 << 20
"""Bytes of one answer, as they come, where nothing else is set."""

_BUFFER = 1 << 16


class Bounds(Struct, frozen=True):
    """What an answer may take: seconds from its request to its last byte, and bytes (None: any number)."""

    seconds: float = TOTAL
    size: int | None = LARGEST


_bounds: ContextVar[Bounds] = ContextVar("bounds", default=Bounds())  # noqa: B039 - it is immutable


@contextmanager
def within_bounds(bounds: Bounds) -> Iterator[None]:
    """Apply these bounds to every answer that this thread begins to read inside the context."""
    before = _bounds.set(bounds)
    try:
        yield
    finally:
        _bounds.reset(before)


class Live:
    """The connections of pools, also those on which an answer is awaited; safe for threads."""

    def __init__(self) -> None:
        """Start without any."""
        self._lock = threading.Lock()
        self._connections = WeakSet[HTTPConnection]()

    def add(self, connection: HTTPConnection) -> None:
        """Add one. It is forgotten when nobody has it any more."""
        with self._lock:
            self._connections.add(connection)

    def cut(self) -> None:
        """End every request at once, as if the network was cut: who waits for an answer gets an error."""
        with self._lock:
            sockets = [connection.sock for connection in self._connections]
        for sock in sockets:
            # Not the one of SSLSocket, which takes the state from the thread that reads.
            with suppress(OSError, TypeError):
                socket.socket.shutdown(cast("socket.socket", sock), socket.SHUT_RDWR)


def bound(pool: PoolManager, api: str, live: Live | None = None) -> None:
    """Make every new connection of the pool a bounded one; `api` is what it connects to, for metrics.

    `live` gets the connections.
    """
    live = live or Live()
    classes = {
        "http": partial(_HttpPool, api=api, live=live),
        "https": partial(_HttpsPool, api=api, live=live),
    }
    pool.pool_classes_by_scheme = cast("Any", classes)
    pool.clear()


class BoundedClient:
    """Sends each request once, and only to where its URL says. Safe for threads."""

    def __init__(self, api: str, *, each: int = 1, pool: PoolManager | None = None) -> None:
        """`api` is what it connects to, for metrics; `each` the idle connections that are kept to a server.

        Servers of others that the settings name are `others/NAME`: their errors are not ours to mend. Without
        a pool, it connects without a proxy.
        """
        self._pool = pool or PoolManager(num_pools=max(4, each), maxsize=each)
        bound(self._pool, api)

    def send(
        self,
        method: str,
        url: str,
        bounds: Bounds,
        *,
        body: bytes | str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        connect: float | None = None,
    ) -> BaseHTTPResponse:
        """Return the answer, whatever its status; `connect` are the seconds until there is a connection.

        Raises the errors of urllib3, OSError and ValueError.
        """
        with within_bounds(bounds):
            return self._pool.request(
                method,
                url,
                body=body,
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers},
                timeout=Timeout(total=bounds.seconds, connect=connect or bounds.seconds),
                retries=False,
                redirect=False,
                decode_content=False,
            )

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()


def answers_within(bounds: Bounds) -> Any:
    """Return the `response_class` of a connection of http.client, for answers with these bounds."""
    return partial(_Answer, bounds=bounds)


class _Incoming(io.RawIOBase):
    """What comes from a socket, until the bounds are reached."""

    def __init__(self, sock: socket.socket, bounds: Bounds) -> None:
        self._socket = sock
        # Keeps the socket open until this is closed: http.client closes it before the body is read.
        self._file = sock.makefile("rb", buffering=0)
        self._each = sock.gettimeout()
        self._ends = time.monotonic() + bounds.seconds
        self._left = bounds.size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the answer was not over in time")
        if self._each is None or seconds < self._each:
            self._socket.settimeout(seconds)
        # Not through the file: a list of 5,000 nodes takes 15,000 reads, and the file is a third of each.
        count = self._socket.recv_into(buffer)
        if self._left is not None and count:
            self._left -= count
            if self._left < 0:
                # Those that ask report it as a connection that was cut.
                raise http.client.HTTPException("the answer is too large")
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _Socket:
    """A socket of which http.client wants the file only."""

    def __init__(self, sock: socket.socket, bounds: Bounds) -> None:
        self._raw = _Incoming(sock, bounds)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._raw, _BUFFER)


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, bounds: Bounds, **named: Any) -> None:
        super().__init__(cast("socket.socket", _Socket(sock, bounds)), *arguments, **named)


def fingerprint(file: Path | str | None) -> tuple[int, ...] | None:
    """Return what changes with the file, None if there is no file."""
    try:
        found = Path(file).stat() if file is not None else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ino, found.st_size) if found is not None else None


class SharedTls:
    """One TLS context for all connections of a pool. To load authorities costs more than the handshake."""

    def __init__(self) -> None:
        """Start without a context: the first connection makes it."""
        self._lock = threading.Lock()
        self._key: tuple[object, ...] = ()
        self._context: ssl.SSLContext | None = None

    def context(self, connection: HTTPSConnection) -> ssl.SSLContext:
        """Return the context with what the connection names, read again if a file has changed.

        Raises SSLError if a file can't be used.
        """
        named = (connection.ca_certs, connection.ca_cert_dir, connection.cert_file, connection.key_file)
        system = ssl.get_default_verify_paths()
        files = (*named, system.cafile, system.capath)
        # Taken before the files are read: a change in the meantime is seen by the next connection.
        key = (*named, *map(fingerprint, files), connection.cert_reqs, connection.ca_cert_data)
        with self._lock:
            if self._context is None or key != self._key:
                try:
                    self._context = _load(connection)
                except OSError as error:
                    raise SSLError(error) from error
                self._key = key
            return self._context


def _load(connection: HTTPSConnection) -> ssl.SSLContext:
    authorities = (connection.ca_certs, connection.ca_cert_dir, connection.ca_cert_data)
    wanted = resolve_cert_reqs(connection.cert_reqs)
    context = connection.ssl_context
    if context is None:
        context = create_urllib3_context(
            resolve_ssl_version(connection.ssl_version),
            wanted,
            ssl_minimum_version=connection.ssl_minimum_version,
            ssl_maximum_version=connection.ssl_maximum_version,
        )
        if not any(authorities) and wanted != ssl.CERT_NONE:
            context.load_default_certs()
    if any(authorities):
        context.load_verify_locations(*authorities)
    if connection.cert_file:
        password = connection.key_password or _no_password
        context.load_cert_chain(connection.cert_file, connection.key_file, password)
    return context


def _no_password() -> str:
    # Without this function OpenSSL would ask for the key's password on the terminal.
    raise SSLError("the client's private key needs a password")


class _Http(HTTPConnection):
    def getresponse(self) -> Any:
        self.response_class = answers_within(_bounds.get())
        return super().getresponse()


class _Https(HTTPSConnection):
    tls: SharedTls

    def connect(self) -> None:
        if self.proxy is not None:
            # The proxy's own certificate is checked with the same files.
            super().connect()
            return
        own = self.ssl_context, self.ca_certs, self.ca_cert_dir, self.ca_cert_data
        chain = self.cert_file, self.key_file
        self.ssl_context = self.tls.context(self)
        self.ca_certs = self.ca_cert_dir = self.ca_cert_data = self.cert_file = self.key_file = None
        try:
            super().connect()
        finally:
            # A connection that was closed connects again, perhaps after its files have changed.
            self.ssl_context, self.ca_certs, self.ca_cert_dir, self.ca_cert_data = own
            self.cert_file, self.key_file = chain

    def getresponse(self) -> Any:
        self.response_class = answers_within(_bounds.get())
        return super().getresponse()


class _Reported(HTTPConnectionPool):
    def __init__(self, *arguments: Any, api: str, live: Live, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._api, self._live = api, live

    def _new_conn(self) -> Any:
        connection = super()._new_conn()
        self._live.add(cast("HTTPConnection", connection))
        return connection

    def urlopen(self, method: str, url: str, *arguments: Any, **named: Any) -> Any:
        began, status = time.monotonic(), None
        try:
            response = super().urlopen(method, url, *arguments, **named)
            status = response.status
            return response
        finally:
            report(self._api, method, status, time.monotonic() - began, url)


class _HttpPool(_Reported):
    ConnectionCls = _Http


class _HttpsPool(_Reported, HTTPSConnectionPool):
    ConnectionCls = _Https

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._tls = SharedTls()

    def _new_conn(self) -> Any:
        connection = cast("_Https", super()._new_conn())
        connection.tls = self._tls
        return connection
