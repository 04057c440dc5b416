"""How to reach the API server: kubeconfig, ServiceAccount, or what the environment has."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import urllib3
from msgspec import Struct
from urllib3.connection import HTTPConnection

from reconciler.model.errors import ClusterError, NoThread, Unauthorized, Unreachable
from reconciler.threads import start

POOL = 256
"""Connections that are kept open: more than threads use at once, because each new one costs a handshake."""

# A watch whose server disappears without a word would otherwise be noticed by its timeout alone. The numbers
# are those of client-go (k8s.io/client-go, transport): probe after 30 s, every 15 s, 9 times.
KEEP_ALIVE = (
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 9))
        if hasattr(socket, name)
    ),
)


class Origin(Struct, frozen=True):
    """Where an access comes from: a context of a kubeconfig, or the ServiceAccount of the Pod (all empty).

    `cluster` is the name that the kubeconfig gives the cluster. `insecure`: the kubeconfig says that the
    server's certificate is not checked.
    """

    kubeconfig: str = ""
    context: str = ""
    cluster: str = ""
    insecure: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        if not self.kubeconfig:
            return "the ServiceAccount of the Pod"
        return f"context {self.context} of {self.kubeconfig}" if self.context else self.kubeconfig


class ApiAccess(Struct, frozen=True):
    """The server's URL without a trailing slash, the pool of connections to it, and our identity.

    `authorization` returns the value of the Authorization header, None if a client certificate or nothing
    identifies us. It may be slow, and it raises Unauthorized if the credentials cannot be refreshed.
    `authority` is the file of the certificate authority, which new connections read, if it is a file.
    `origin` is where all this comes from.
    """

    host: str
    pool: urllib3.PoolManager
    authorization: Callable[[], str | None]
    authority: Path | None = None
    origin: Origin = Origin()


LOOK_EVERY = 10.0
"""Seconds between two calls of `authorization`. A token is renewed minutes before it expires."""

PLUGIN_LIMIT = 60.0
"""Seconds that a credential plugin may take. The official package sets no limit."""

Value = TypeVar("Value")


class Credentials:
    """One header for many threads."""

    def __init__(
        self, authorization: Callable[[], str | None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Use this function, which returns the header, and a clock in seconds."""
        self._authorization = authorization
        self._clock = clock
        # The official package has no lock: eight threads at expiry would run the plugin eight times.
        self._lock = threading.Lock()
        self._header: str | None = None
        self._looked: float | None = None

    def header(self) -> str | None:
        """Return the header's value, None for client certificates; Unauthorized if a refresh fails."""
        with self._lock:
            now = self._clock()
            if self._looked is None or now - self._looked >= LOOK_EVERY:
                try:
                    self._header = within(PLUGIN_LIMIT, self._authorization, no_answer(PLUGIN_LIMIT))
                    self._looked = now
                except NoThread as error:
                    # The last one is good for some minutes, and the next request tries it again.
                    if self._looked is None:
                        raise Unreachable(str(error)) from error
            return self._header


def no_answer(seconds: float) -> Unauthorized:
    """Return the error of a credential plugin that takes longer than this."""
    return Unauthorized(f"the credential plugin of the kubeconfig did not answer within {seconds:g} s")


def within(seconds: float, work: Callable[[], Value], late: ClusterError) -> Value:
    """Return what `work` returns, or raise what it raises; `late` if it takes longer.

    Raises NoThread if no thread can start for it.
    """
    results: list[Value] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            errors.append(error)

    start("credentials", run).join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise late
    return results[0]
