"""What every HTTP fake is: a server on a free port of loopback that ends with its test."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


class Loopback:
    """Serves inside the context; `stopping` is set at its end, for answers that wait."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        """Bind the port at once, so that the address is known; serve only inside the context."""
        self.stopping = threading.Event()
        # Without it, a body waits 40 ms for the client's acknowledgement of the headers.
        handler.disable_nagle_algorithm = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def address(self) -> str:
        """The URL without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
