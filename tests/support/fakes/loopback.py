"""What every fake is: a server on a free port of loopback that ends with its test."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

JsonAnswer = tuple[int, dict[str, Any] | None, dict[str, str]]
"""Status, body and headers."""


class Served:
    """Serves inside the context; `stopping` is set at its end, for answers that wait."""

    def __init__(self, server: socketserver.TCPServer) -> None:
        """Take a server with a bound port, so that the address is known; serve only inside the context."""
        self.stopping = threading.Event()
        self._bound = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        """The port."""
        return int(self._bound.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._bound.shutdown()
        self._bound.server_close()
        self._thread.join(5)


class Loopback(Served):
    """An HTTP server."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        """Take the port; 0 is one that is free."""
        # Without it, a body waits 40 ms for the client's acknowledgement of the headers.
        handler.disable_nagle_algorithm = True
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        server.daemon_threads = True
        super().__init__(server)

    @property
    def address(self) -> str:
        """The URL without a path."""
        return f"http://127.0.0.1:{self.port}"


class JsonLoopback(Loopback):
    """A server of JSON, in which `respond` answers each request: method, target, headers, and body."""

    def __init__(self, respond: Callable[[str, str, dict[str, str], bytes], JsonAnswer]) -> None:
        """Take what answers; the names of the headers that it is given are in lower case."""

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {key.casefold(): text for key, text in self.headers.items()}
                code, body, more = respond(self.command, self.path, headers, content)
                sent = b"" if body is None else json.dumps(body).encode()
                self.send_response(code)
                for key, text in more.items():
                    self.send_header(key, text)
                self.send_header("Content-Type", "application/json; charset=utf-8")
                self.send_header("Content-Length", str(len(sent)))
                # Who has waited long enough is no longer there.
                with suppress(ConnectionError):
                    self.end_headers()
                    self.wfile.write(sent)

            do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - http.server's names

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        super().__init__(Handler)
