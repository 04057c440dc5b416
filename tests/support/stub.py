"""A server that sends any answer that a test wants, cut off where the test wants."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from reconciler.kubernetes.connection import Connection
from tests.support import shapes

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came; `number` counts from 0."""

    number: int
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent. `cut`: more is promised than comes. `hang`: nothing comes until the stub is closed.

    `quiet`: a watch without events. Its headers come at once, as the API server sends them, and no more.
    """

    body: bytes = b"{}"
    status: int = 200
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: bool = False
    quiet: bool = False


def json_answer(document: object, status: int = 200, **headers: str) -> Answer:
    """A document as JSON; `Retry_After` becomes the header Retry-After."""
    return Answer(
        json.dumps(document).encode(),
        status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def status(code: int, reason: str = "", message: str = "", **headers: str) -> Answer:
    """A Status as the API server gives it."""
    document = {"kind": "Status", "apiVersion": "v1", "reason": reason, "message": message, "code": code}
    return json_answer(document, code, **headers)


def _negotiated(asked: Asked, said: Answer) -> Answer:
    """The answer in the format that was requested, as the API server gives it."""
    if asked.headers.get("Accept") != PROTOBUF or said.content_type != JSON or said.status >= 300 or said.cut:
        return said
    try:
        body = shapes.negotiated(asked.path, said.body, watch="watch" in asked.query)
    except (ValueError, TypeError, KeyError, AttributeError):
        # What a test breaks comes as it is.
        return said
    return said if body is None else replace(said, body=body, content_type=PROTOBUF)


class Stub:
    """The server, on a free port of loopback; `asked` are the requests so far, `slept` the waits."""

    def __init__(self, answer: Callable[[Asked], Answer], tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.slept: list[float] = []
        self.closed = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Without it, a body waits 40 ms for the client's acknowledgement of the headers.
            disable_nagle_algorithm = True

            def answer(self) -> None:
                url = urlsplit(self.path)
                size = int(self.headers.get("Content-Length", "0"))
                asked = Asked(
                    len(stub.asked),
                    self.command,
                    url.path,
                    {key: values[0] for key, values in parse_qs(url.query).items()},
                    dict(self.headers),
                    self.rfile.read(size),
                )
                stub.asked.append(asked)
                said = _negotiated(asked, answer(asked))
                if said.hang:
                    stub.closed.wait()
                    self.close_connection = True
                    return
                self.send_response(said.status)
                self.send_header("Content-Type", said.content_type)
                if not said.quiet:
                    self.send_header("Content-Length", str(len(said.body) + (1000 if said.cut else 0)))
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if said.quiet:
                    stub.closed.wait()
                    self.close_connection = True
                    return
                # The client may have read enough, and gone.
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(said.body)
                self.close_connection = said.cut

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - http.server's names

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        scheme = "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """Stop, and release hanging requests."""
        self.closed.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def write_kubeconfig(self, path: Path, user: dict[str, Any] | None = None) -> Path:
        """A kubeconfig that leads here."""
        path.write_text(json.dumps(kubeconfig(self.url, user or {"token": "secret"})), encoding="utf-8")
        return path


def kubeconfig(url: str, user: dict[str, Any]) -> dict[str, Any]:
    """A kubeconfig; JSON is YAML."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "one", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "one", "user": "me"}}],
        "current-context": "it",
    }


StubMaker = Callable[[Callable[[Asked], Answer]], tuple[Stub, Connection]]
"""The fixture `stub`: a stub that answers by a function, and a connection to it that never really sleeps."""


_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: nobody, user: {}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
"""


@contextmanager
def connection_to_nowhere(folder: Path) -> Iterator[Connection]:
    """Make the connection; its kubeconfig is written to the folder."""
    config = folder / "kubeconfig"
    config.write_text(_KUBECONFIG, encoding="utf-8")
    made = Connection(str(config))
    try:
        yield made
    finally:
        made.close()
