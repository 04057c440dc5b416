"""What every fake is: a server on a free port of loopback that ends with its test."""

from __future__ import annotations

import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


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
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stopping.set()
        self._bound.shutdown()
        self._bound.server_close()
        self._thread.join(5)


class Loopback(Served):
    """An HTTP server."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        """Bind the port."""
        # Without it, a body waits 40 ms for the client's acknowledgement of the headers.
        handler.disable_nagle_algorithm = True
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        super().__init__(server)

    @property
    def address(self) -> str:
        """The URL without a path."""
        return f"http://127.0.0.1:{self.port}"
