"""An SMTP server on loopback (RFC 5321) that keeps what it is sent.

It can ask for a login, refuse, and encrypt: from the start, or after STARTTLS (RFC 3207).
"""

from __future__ import annotations

import base64
import socketserver
import ssl
import threading
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import cast

from tests.support.fakes.loopback import Served


@dataclass
class Mailbox:
    """What the server got, and how it answers: `refuses` has the reply to a command, by its first word."""

    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    refuses: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    encrypted: list[str] = field(default_factory=list)
    """The commands that came over an encrypted connection."""


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = cast("_Server", self.server)
        box = server.box
        encrypted = False
        if server.implicit:
            if not self._encrypt():
                return
            encrypted = True
        if box.silent:
            server.stopping.wait(10)
            return
        self._say("220 loopback ESMTP")
        to: list[str] = []
        while line := self.rfile.readline():
            words = line.decode().strip()
            name = words.partition(" ")[0].upper()
            if encrypted:
                box.encrypted.append(name)
            if name in box.refuses:
                self._say(box.refuses[name])
            elif name == "EHLO":
                offers = server.tls is not None and not encrypted
                self._say(f"250-loopback\r\n{'250-STARTTLS' if offers else '250-HELP'}\r\n250 AUTH PLAIN")
            elif name == "STARTTLS":
                self._say("220 go on")
                if not self._encrypt():
                    return
                encrypted = True
            elif name == "AUTH":
                _, user, password = base64.b64decode(words.split()[2]).decode().split("\0")
                box.logins.append((user, password))
                self._say("235 welcome")
            elif name == "RCPT":
                to.append(words.partition("<")[2].rstrip(">"))
                self._say("250 ok")
            elif name == "DATA":
                self._say("354 go on")
                box.mails.append(message_from_bytes(self._data(), policy=policy.default))
                box.recipients.append(to)
                to = []
                self._say("250 taken")
            elif name == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 ok")

    def _encrypt(self) -> bool:
        """Wrap the connection, and return whether the client agreed to the certificate."""
        context = cast("_Server", self.server).tls
        assert context is not None
        try:
            self.connection = context.wrap_socket(self.connection, server_side=True)
        except (ssl.SSLError, ConnectionError):
            return False
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
        return True

    def finish(self) -> None:
        super().finish()
        # An encrypted connection is another socket than the one that the server closes.
        self.connection.close()

    def _data(self) -> bytes:
        lines: list[bytes] = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        return b"".join(lines)

    def _say(self, reply: str) -> None:
        self.wfile.write(f"{reply}\r\n".encode())


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    box: Mailbox
    stopping: threading.Event
    tls: ssl.SSLContext | None
    implicit: bool


class FakeSmtp(Served):
    """Serves inside the context."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, implicit: bool = False) -> None:
        """Bind a free port. With `tls` it offers STARTTLS, or encrypts from the start (`implicit`)."""
        self.box = Mailbox()
        server = _Server(("127.0.0.1", 0), _Session)
        super().__init__(server)
        server.tls, server.implicit = tls, implicit
        server.box, server.stopping = self.box, self.stopping
