"""A proxy on loopback that connects its clients to any server (CONNECT, RFC 9110), and keeps who asked."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import cast

from tests.support.fakes.loopback import Served


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = cast("_Server", self.server)
        lines = [line.decode().strip() for line in iter(self.rfile.readline, b"\r\n")]
        method, target, _ = lines[0].split()
        server.targets.append((method, target))
        server.headers.append(dict(_header(line) for line in lines[1:]))
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\n\r\n")
            return
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as upstream:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(upstream, self.connection), daemon=True)
            back.start()
            _copy(self.connection, upstream)
            back.join(10)


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.lower(), value.strip()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    targets: list[tuple[str, str]]
    headers: list[dict[str, str]]


class Tunnel(Served):
    """Serves inside the context; `targets` are the requests as (method, target)."""

    def __init__(self) -> None:
        """Bind a free port."""
        server = _Server(("127.0.0.1", 0), _Session)
        self.targets = server.targets = []
        self.headers = server.headers = []
        super().__init__(server)

    @property
    def place(self) -> str:
        """Its address and port."""
        return f"127.0.0.1:{self.port}"
