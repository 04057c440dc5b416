"""Whether a long-running job is well, over HTTP: /healthz (alive) and /readyz (has looked at the cluster)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[], str]


class _Handler(BaseHTTPRequestHandler):
    timeout = 10
    checks: dict[str, Answer] = {}  # noqa: RUF012 - each server makes a class of its own

    def do_GET(self) -> None:
        """Answer 200, or 503 with the reason."""
        check = self.checks.get(self.path.partition("?")[0])
        if check is None:
            self._answer(HTTPStatus.NOT_FOUND, "not found")
            return
        wrong = check()
        self._answer(HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK, wrong or "ok")

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep probes out of the log."""


class HealthServer:
    """Answers probes from threads of its own until it is left."""

    def __init__(self, address: tuple[str, int], checks: dict[str, Answer]) -> None:
        """Listen on `address` (port 0: any); a check returns what is wrong, empty when nothing is."""
        handler = type("Handler", (_Handler,), {"checks": checks})
        self._server = ThreadingHTTPServer(address, handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port

    def __enter__(self) -> HealthServer:
        """Begin to answer."""
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
