"""Answers probes over HTTP: /healthz (the process runs) and /readyz (it does its work), and sends documents.

The node agent imports this file, so it needs nothing but the standard library, and of that only what
`socket` loads anyway: http.server takes 1 MiB more.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from reconciler.threads import start

Answer = Callable[[], str]

MOST_CONNECTIONS = 64
"""Connections that are open at once. A further one closes the oldest, so that silent clients block no one."""

PATIENCE = 5.0
"""Seconds in which a client must have sent its whole request."""

LARGEST_REQUEST = 8_192
"""Bytes of a request, which has no body."""

LARGEST_QUERY = 1_024
"""Characters of a query."""

LARGEST_ANSWER = 2_048
"""Characters of a reason."""

ANSWERING = 30.0
"""Seconds in which a document must be made, and as many in which the client must have read it."""

_END = (b"\r\n\r\n", b"\n\n")

_Asked = tuple[str, str]
"""A path and a query."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a path of its own answers: metrics, or a page. All clients that read it share the body."""

    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    status: str = "200 OK"


@dataclass(frozen=True, slots=True)
class ByQuery:
    """Makes another document for each query of a request, which is empty without one."""

    make: Callable[[str], Document]


Make = Callable[[], Document] | ByQuery
"""Makes the document of a path."""


@dataclass(slots=True)
class _Client:
    """One open connection, what it has sent, and until when (monotonic seconds) it may take the next step.

    `waits_for` is the path and the query of the document that is made for it. `rest` is what it has not read
    yet of its answer; None while there is none. `read` is called once it has read a whole document.
    """

    socket: socket.socket
    until: float
    received: bytearray = field(default_factory=bytearray)
    rest: deque[memoryview] | None = None
    waits_for: _Asked | None = None
    only_headers: bool = False
    read: Callable[[], None] | None = None


_Made = tuple[_Asked, str, Document, Callable[[], None] | None]
"""A document with what was asked and its status, and what to call once a client has read it."""


class _Documents:
    """Makes the documents in a thread of its own, each once for all that wait for it."""

    def __init__(
        self, documents: Mapping[str, Make], report: Callable[[Exception], None], ready: Callable[[], object]
    ) -> None:
        """Call `ready` from that thread when a document can be taken."""
        self._documents, self._report, self._ready = documents, report, ready
        self._changed = threading.Condition()
        self._wanted: dict[_Asked, None] = {}
        self._being_made: _Asked | None = None
        self._ends = False
        self._made: deque[_Made] = deque()
        self._were_read: set[str] = set()
        self._once_read: dict[str, Callable[[], None]] = {}
        self._thread: threading.Thread | None = None

    def __contains__(self, path: object) -> bool:
        return path in self._documents

    def asked(self, path: str, query: str) -> _Asked:
        """Return what a client has asked, which may be the same for all queries."""
        return path, query if isinstance(self._documents[path], ByQuery) else ""

    def start(self) -> None:
        """Begin, if there are any documents."""
        if self._documents:
            self._thread = start("documents", self._make)

    def join(self) -> None:
        """End the thread."""
        if self._thread is not None:
            with self._changed:
                self._ends = True
                self._changed.notify()
            self._thread.join()

    def want(self, asked: _Asked) -> None:
        """Make the document, unless that has begun already."""
        with self._changed:
            if asked != self._being_made:
                self._wanted[asked] = None
                self._changed.notify()

    def forget(self, asked: _Asked) -> None:
        """Do not make the document, because nobody waits for it any more."""
        with self._changed:
            self._wanted.pop(asked, None)

    def take(self) -> Iterator[_Made]:
        """Yield each document that is made."""
        while self._made:
            yield self._made.popleft()

    def once_read(self, path: str, tell: Callable[[], None]) -> bool:
        """Call `tell` when a document of this path is read, if one was before; return whether one was."""
        if path in self._were_read:
            self._once_read[path] = tell
        return path in self._once_read

    def _make(self) -> None:
        while (asked := self._next()) is not None:
            path, query = asked
            # A document whose making has begun may have older values.
            read = partial(self._was_read, path, self._once_read.get(path))
            try:
                make = self._documents[path]
                made = make.make(query) if isinstance(make, ByQuery) else make()
                answer: _Made = (asked, made.status, made, read)
            except Exception as error:  # noqa: BLE001 - without this thread nobody gets a document any more
                self._report(error)
                wrong = _text(f"an error in this program, see its log: {type(error).__name__}")
                answer = (asked, "500 Internal Server Error", wrong, None)
            with self._changed:
                # Who asks from now on gets another one.
                self._being_made = None
                self._made.append(answer)
            self._ready()

    def _next(self) -> _Asked | None:
        """Wait for the next one that somebody wants; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self._ends)
            if self._ends:
                return None
            self._being_made = next(iter(self._wanted))
            del self._wanted[self._being_made]
            return self._being_made

    def _was_read(self, path: str, tell: Callable[[], None] | None) -> None:
        self._were_read.add(path)
        if tell is not None:
            tell()


class HealthServer:
    """Answers probes from one thread until it is left.

    One thread serves all connections without blocking on any of them. Their number, the time of each, and the
    size of its request are limited, so that clients cost little memory and no thread. A second thread makes
    the documents, each once for all that wait for it, so that no probe waits for a page.
    """

    def __init__(
        self,
        address: tuple[str, int],
        checks: Mapping[str, Answer],
        *,
        documents: Mapping[str, Make] = MappingProxyType({}),
        ok: str = "ok",
        patience: float = PATIENCE,
        report: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """Listen on `address` (port 0: any); a check returns what is wrong, empty when nothing is.

        `checks` and `documents` are by path. Checks are called in the thread of the server, documents in one
        of their own; `report` is given each unexpected error. `ok` is the answer where nothing is wrong,
        `patience` the seconds that a client has for its request. Raises OSError if the address can't be
        used.
        """
        self._checks = checks
        self._ok, self._patience, self._report = ok, patience, report
        self._clients: dict[int, _Client] = {}
        self._ending = False
        self._names = {"localhost", address[0].lower(), ""}
        self._listener = _listener(address)
        self._listener.setblocking(False)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self.port = self.address[1]
        self.place = place_of(self.address)
        """The address as people write it, such as `[::]:8080`."""

        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread: threading.Thread | None = None
        self._made = _Documents(documents, report, partial(self._wake.send, b"x"))

    def __enter__(self) -> HealthServer:
        """Begin to answer; NoThread if that is not possible now."""
        self._made.start()
        self._thread = start("health", self._run)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop answering."""
        self._ending = True
        self._wake.send(b"x")
        if self._thread is not None:
            self._thread.join()
        self._made.join()
        for client in list(self._clients.values()):
            self._close(client)
        self._selector.close()
        for one in (self._listener, self._wake, self._woken):
            one.close()

    def once_read(self, path: str, tell: Callable[[], None]) -> bool:
        """Call `tell` each time that a client has read a document of this path that is made from now on.

        Returns whether a client has read one before. If not, nobody is likely to, and `tell` is not called.
        """
        return self._made.once_read(path, tell)

    def _run(self) -> None:
        while not self._ending:
            try:
                self._turn()
            except Exception as error:  # noqa: BLE001 - without this thread the kubelet ends the process
                self._report(error)
                time.sleep(0.1)

    def _turn(self) -> None:
        first = min((client.until for client in self._clients.values()), default=None)
        left = None if first is None else max(0.0, first - time.monotonic())
        for key, events in self._selector.select(left):
            if key.fileobj is self._listener:
                self._accept()
            elif key.data is None:
                self._woken.recv(MOST_CONNECTIONS)
            elif events & selectors.EVENT_WRITE:
                self._send(key.data)
            else:
                self._serve(key.data)
        for asked, status, document, read in self._made.take():
            for client in list(self._clients.values()):
                if client.waits_for == asked:
                    client.waits_for = None
                    client.read = None if client.only_headers else read
                    self._selector.register(client.socket, selectors.EVENT_READ, client)
                    self._begin(client, status, document)
        now = time.monotonic()
        for client in list(self._clients.values()):
            if client.until <= now:
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
        except BlockingIOError:
            return
        except OSError:
            # The client is gone.
            self._close(client)
            return
        client.received += chunk
        whole = any(end in client.received for end in _END)
        if whole or len(client.received) > LARGEST_REQUEST:
            self._answer(client, whole=whole)
        elif not chunk:
            self._close(client)

    def _answer(self, client: _Client, *, whole: bool) -> None:
        method, _, rest = bytes(client.received).partition(b" ")
        path, _, query = rest.split(b" ", 1)[0].decode("latin-1").partition("?")
        client.only_headers = method == b"HEAD"
        if whole and not self._is_for_us(bytes(client.received)):
            # A browser that a web site has led here by its own name (DNS rebinding) sends that name.
            wrong = "use the IP address, localhost, the name of --listen, or a name that ends in .svc"
            self._begin(client, "421 Misdirected Request", _text(wrong))
        elif not whole:
            self._begin(client, "431 Request Header Fields Too Large", _text("the request is too large"))
        elif method not in (b"GET", b"HEAD"):
            self._begin(client, "405 Method Not Allowed", _text("only GET"))
        elif len(query) > LARGEST_QUERY:
            self._begin(client, "414 URI Too Long", _text("the query is too long"))
        elif path in self._made:
            asked = self._made.asked(path, query)
            client.waits_for = asked
            client.until = time.monotonic() + ANSWERING
            # Further bytes of the client are nothing to read, and would wake this thread again and again.
            self._selector.unregister(client.socket)
            self._made.want(asked)
        elif path in self._checks:
            try:
                wrong = self._checks[path]()
            except Exception as error:  # noqa: BLE001 - a check that fails is an answer, too
                self._report(error)
                wrong = f"the check failed: {type(error).__name__}: {error}"
            status = "503 Service Unavailable" if wrong else "200 OK"
            self._begin(client, status, _text(wrong or self._ok))
        else:
            self._begin(client, "404 Not Found", _text("not found"))

    def _is_for_us(self, request: bytes) -> bool:
        """Return whether each `Host` of a request is a name that no web site can have: RFC 9110, 7.4."""
        for line in request.splitlines()[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() != b"host":
                continue
            host = value.strip().decode("latin-1").lower()
            host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            of_cluster = host.endswith((".svc", ".svc.cluster.local"))
            if not (host in self._names or of_cluster or _is_address(host)):
                return False
        return True

    def _begin(self, client: _Client, status: str, document: Document) -> None:
        """Begin to send an answer. Most of them fit into the buffer of the socket."""
        names = [("Content-Type", document.content_type), ("Content-Length", str(len(document.body)))]
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in (*names, *document.headers))]
        head = "\r\n".join([*lines, "Connection: close", "", ""]).encode()
        client.rest = deque([memoryview(head)])
        if not client.only_headers:
            client.rest.append(memoryview(document.body))
        self._selector.modify(client.socket, selectors.EVENT_WRITE, client)
        client.until = time.monotonic() + ANSWERING
        self._send(client)

    def _send(self, client: _Client) -> None:
        """Send as much of the answer as the client takes now; close at its end."""
        if client.rest is None or client.socket.fileno() not in self._clients:
            return
        try:
            while client.rest:
                sent = client.socket.send(client.rest[0])
                client.rest[0] = client.rest[0][sent:]
                if not client.rest[0]:
                    client.rest.popleft()
        except BlockingIOError:
            return
        except OSError:
            # The client is gone.
            client.read = None
        self._close(client)
        if client.read is not None:
            client.read()

    def _close_oldest(self) -> None:
        oldest = next(iter(self._clients.values()), None)
        if oldest is not None:
            self._close(oldest)

    def _close(self, client: _Client) -> None:
        self._clients.pop(client.socket.fileno(), None)
        asked = client.waits_for
        if asked is None:
            self._selector.unregister(client.socket)
        elif all(other.waits_for != asked for other in self._clients.values()):
            self._made.forget(asked)
        with contextlib.suppress(OSError):
            client.socket.shutdown(socket.SHUT_WR)
        client.socket.close()


def _text(text: str) -> Document:
    return Document("text/plain; charset=utf-8", f"{text[:LARGEST_ANSWER]}\n".encode(errors="replace"))


def place_of(address: tuple[str, int]) -> str:
    """Return an address as people write it; an IPv6 address has brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_address(host: str) -> bool:
    """Return whether a host is an IP address, and not a name. A zone may follow one of IPv6."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host.partition("%")[0])
            return True
    return False


def _listener(address: tuple[str, int]) -> socket.socket:
    """Return a socket that listens at the address; all addresses are those of IPv4 and of IPv6.

    A kubelet asks its Pod at the Pod's first address, which is one of IPv6 in many clusters.
    """
    host, port = address
    if host in ("", "::"):
        # A host may lack IPv4, IPv6, or sockets that serve both.
        if socket.has_dualstack_ipv6():
            try:
                return socket.create_server(
                    ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128
                )
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
        family = socket.AF_INET6 if host else socket.AF_INET
        return socket.create_server(address, family=family, backlog=128)
    family, *_, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server((str(found[0]), port), family=family, backlog=128)
