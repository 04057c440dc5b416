"""Answers probes over HTTP: /healthz (the process runs) and /readyz (it does its work).

The node agent imports this file, so it needs nothing but the standard library, and of that only what
`socket` loads anyway: http.server takes 1 MiB more.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Answer = Callable[[], str]

MOST_CONNECTIONS = 64
"""Connections that are open at once. A further one closes the oldest, so that silent clients block no one."""

PATIENCE = 5.0
"""Seconds in which a client must have sent its whole request."""

LARGEST_REQUEST = 8_192
"""Bytes of a request, which has no body."""

LARGEST_ANSWER = 2_048
"""Characters of a reason: the answer must fit into the buffer of the socket, because nothing waits."""

_END = (b"\r\n\r\n", b"\n\n")


@dataclass(slots=True)
class _Client:
    """One open connection, what it has sent, and until when (monotonic seconds) it may send the rest."""

    socket: socket.socket
    until: float
    received: bytearray = field(default_factory=bytearray)


class HealthServer:
    """Answers probes from one thread until it is left.

    One thread serves all connections without blocking on any of them. Their number, the time of each, and the
    size of its request are limited, so that clients cost little memory and no thread.
    """

    def __init__(
        self,
        address: tuple[str, int],
        checks: Mapping[str, Answer],
        *,
        ok: str = "ok",
        patience: float = PATIENCE,
        report: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """Listen on `address` (port 0: any); a check returns what is wrong, empty when nothing is.

        `checks` are by path, and called in the thread of the server, like `report`, which is given each
        unexpected error. `ok` is the answer where nothing is wrong, `patience` the seconds that a client has
        for its request. Raises OSError if the address can't be used.
        """
        self._checks = checks
        self._ok, self._patience, self._report = ok, patience, report
        self._clients: dict[int, _Client] = {}
        self._ending = False
        self._listener = _listener(address)
        self._listener.setblocking(False)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self.port = self.address[1]
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)

    def __enter__(self) -> HealthServer:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop answering."""
        self._ending = True
        self._wake.send(b"x")
        self._thread.join()
        for client in list(self._clients.values()):
            self._close(client)
        self._selector.close()
        for one in (self._listener, self._wake, self._woken):
            one.close()

    def _run(self) -> None:
        while not self._ending:
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - without this thread the kubelet ends the process
                self._report(error)
                time.sleep(0.1)

    def _turn(self) -> None:
        """Wait for something to do, and do it."""
        oldest = next(iter(self._clients.values()), None)
        left = None if oldest is None else max(0.0, oldest.until - time.monotonic())
        for key, _ in self._selector.select(left):
            if key.fileobj is self._listener:
                self._accept()
            elif key.data is not None:
                self._serve(key.data)
        now = time.monotonic()
        # In the order of their arrival, which is that of their ends.
        for client in list(self._clients.values()):
            if client.until > now:
                break
            self._close(client)

    def _accept(self) -> None:
        """Take one new connection. Most of them have sent their request already, and are answered at once."""
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:
            # The client is gone, or there are too many open files. Both are temporary.
            self._close_oldest()
            time.sleep(0.01)
            return
        if len(self._clients) >= MOST_CONNECTIONS:
            self._close_oldest()
        connection.setblocking(False)
        client = _Client(connection, time.monotonic() + self._patience)
        self._clients[connection.fileno()] = client
        self._selector.register(connection, selectors.EVENT_READ, client)
        self._serve(client)

    def _serve(self, client: _Client) -> None:
        """Read what has come; answer when that is the whole request."""
        if client.socket.fileno() not in self._clients:
            return
        try:
            chunk = client.socket.recv(LARGEST_REQUEST)
            client.received += chunk
            whole = any(end in client.received for end in _END)
            if whole or len(client.received) > LARGEST_REQUEST:
                client.socket.send(self._answer(bytes(client.received), whole=whole))
            elif chunk:
                return
        except BlockingIOError:
            return
        except OSError:
            # The client is gone.
            pass
        self._close(client)

    def _answer(self, request: bytes, *, whole: bool) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.split(b" ", 1)[0].partition(b"?")[0].decode("latin-1")
        check = self._checks.get(path)
        if not whole:
            status, text = "431 Request Header Fields Too Large", "the request is too large"
        elif method not in (b"GET", b"HEAD"):
            status, text = "405 Method Not Allowed", "only GET"
        elif check is None:
            status, text = "404 Not Found", "not found"
        else:
            wrong = self._wrong(check)
            status, text = ("503 Service Unavailable", wrong) if wrong else ("200 OK", self._ok)
        body = f"{text[:LARGEST_ANSWER]}\n".encode(errors="replace")
        headers = (
            f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close"
        )
        return f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n".encode() + (b"" if method == b"HEAD" else body)

    def _wrong(self, check: Answer) -> str:
        try:
            return check()
        except Exception as error:  # noqa: BLE001 - a check that fails is an answer, too
            self._report(error)
            return f"the check failed: {type(error).__name__}: {error}"

    def _close_oldest(self) -> None:
        oldest = next(iter(self._clients.values()), None)
        if oldest is not None:
            self._close(oldest)

    def _close(self, client: _Client) -> None:
        self._clients.pop(client.socket.fileno(), None)
        self._selector.unregister(client.socket)
        with contextlib.suppress(OSError):
            client.socket.shutdown(socket.SHUT_WR)
        client.socket.close()


def _listener(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    return socket.create_server(address, family=family, backlog=128)
