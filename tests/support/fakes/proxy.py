"""A proxy before the API server that can end its client before or after the n-th request that writes.

It speaks plain HTTP to the client, so that it sees the requests, and TLS with a token of its own to the
server. Watches are handed through as they come.
"""

from __future__ import annotations

import http.client
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from email.utils import format_datetime, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import yaml

from tests.support.fakes.loopback import Served

READING = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the client's life ends: at the `number`-th write (from 1), before or after the server has it.

    Only writes count with this regular expression in their method and path.
    """

    number: int
    before: bool
    of: str = ""

    def __str__(self) -> str:
        return f"{'before' if self.before else 'after'} write {self.number}"


def faces(*ahead: float) -> Callable[[str], str]:
    """API servers that answer one after the other; each is so many minutes ahead of the right time."""
    turns = cycle(ahead)

    def changed(date: str) -> str:
        return format_datetime(parsedate_to_datetime(date) + timedelta(minutes=next(turns)), usegmt=True)

    return changed


class Proxy(Served):
    """Serves on loopback for as long as the `with` lasts. `writes` are those that were forwarded or cut."""

    def __init__(self, kubeconfig: Path, cut: Cut | None = None) -> None:
        """Use a kubeconfig with a bearer token; `cut` says where to cut."""
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster = config["clusters"][0]["cluster"]
        self._context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._token = config["users"][0]["user"]["token"]
        server = urlsplit(cluster["server"])
        self._host, self._port = server.hostname or "", server.port
        self._cut = cut
        self._kill: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._victim_known = threading.Event()
        self.writes: list[str] = []
        self.instead: Callable[[str, str], bytes | Iterator[bytes] | None] = lambda method, path: None
        """Gives the raw answer to a request (method, path) that is not forwarded, None where it is.

        The parts of an iterator are sent as they come.
        """
        self.late = 0.0
        """Seconds by which each answer comes late."""
        self.bend: Callable[[str, Iterator[bytes]], Iterator[bytes]] = lambda content_type, chunks: chunks
        """Changes what a watch (content type, chunks) sends to the client."""
        self.dates: Callable[[str], str] = lambda date: date
        """Changes the `Date` of an answer, as of servers with other clocks."""
        proxy = self

        class Handler(_Handler):
            owner = proxy

        super().__init__(_Server(("127.0.0.1", 0), Handler))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._victim_known.set()
        super().__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write_kubeconfig(self, path: Path) -> Path:
        """Write the client's kubeconfig; its token is invalid."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": self.url}}],
            "users": [{"name": "nobody", "user": {"token": "none"}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
            "current-context": "proxy",
        }
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return path

    def ends(self, kill: Callable[[], None]) -> None:
        """Say what ends the client; it must have ended when this returns."""
        self._kill = kill
        self._victim_known.set()

    def upstream(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=120, context=self._context)

    def headers(self, given: Message) -> dict[str, str]:
        kept = {
            name: value
            for name, value in given.items()
            if name.lower() in ("accept", "content-type", "content-length", "user-agent")
        }
        return {**kept, "Authorization": f"Bearer {self._token}"}

    def begins(self, method: str, path: str) -> int | None:
        """Return the write's number, 0 for what only reads; None where the client is ended instead."""
        if method in READING:
            return 0
        with self._lock:
            if self.stopping.is_set():
                return None
            write = f"{method} {path.partition('?')[0]}"
            # The lock and the like are no part of what is cut.
            if self._cut is not None and not re.search(self._cut.of, write):
                return 0
            self.writes.append(write)
            number = len(self.writes)
            return None if self._ended_at(number, before=True) else number

    def is_answered(self, number: int) -> bool:
        """Whether the write's answer goes on to the client; where it does not the client is ended."""
        with self._lock:
            return not self.stopping.is_set() and not self._ended_at(number, before=False)

    def delay(self) -> None:
        """Keep an answer back for as long as answers are late."""
        self.stopping.wait(self.late)

    def _ended_at(self, number: int, *, before: bool) -> bool:
        if self._cut is None or self._cut.before != before or self._cut.number != number:
            return False
        # No other write begins from here on, since the lock is held until the client is dead.
        self._victim_known.wait(60)
        self._kill()
        self.stopping.set()
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: that a client breaks off is what this is for."""


class _Handler(BaseHTTPRequestHandler):
    owner: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        raw = self.owner.instead(self.command, self.path)
        if raw is not None:
            self.close_connection = True
            for part in [raw] if isinstance(raw, bytes) else raw:
                self.wfile.write(part)
            return
        number = self.owner.begins(self.command, self.path)
        if number is None:
            self.close_connection = True
            return
        with closing(self.owner.upstream()) as upstream:
            upstream.request(self.command, self.path, body or None, self.owner.headers(self.headers))
            # An answer without a length keeps the socket open by itself.
            with closing(upstream.getresponse()) as answer:
                self.owner.delay()
                self._answer(answer, number)

    def _answer(self, answer: http.client.HTTPResponse, number: int) -> None:
        if not number:
            self._hand_through(answer)
            return
        content = answer.read()
        if not self.owner.is_answered(number):
            self.close_connection = True
            return
        self._begin(answer)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815 - the base class's names

    def _hand_through(self, answer: http.client.HTTPResponse) -> None:
        self._begin(answer)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        chunks: Iterator[bytes] = iter(lambda: answer.read1(65536), b"")
        if "watch=" in self.path and answer.status == http.client.OK:
            chunks = self.owner.bend(answer.headers.get("Content-Type", ""), chunks)
        for chunk in filter(None, chunks):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def _begin(self, answer: http.client.HTTPResponse) -> None:
        self.send_response_only(answer.status)
        for name in ("Content-Type", "Date", "Retry-After"):
            if value := answer.headers.get(name):
                self.send_header(name, self.owner.dates(value) if name == "Date" else value)

    def log_message(self, *_: object) -> None:
        """Keep requests out of the test's output."""
