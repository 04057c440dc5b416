"""The clocks, for all code that must not read a clock itself."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from threading import Condition

from reconciler.kubernetes.connection import VERSION, Connection, Request
from reconciler.kubernetes.server_time import boottime
from reconciler.model.errors import ClusterError

_PATIENCE = 5.0
"""Seconds for the request that asks for the server's time."""


_STARTED = time.time() - boottime()
"""Unix time at the start of the machine, as it was known when this process began."""


class SystemClock:
    """The machine's time; implements `reconciler.model.ports.Clock`.

    It is read once. From then on the time goes by a clock that nobody sets, so a correction of the local
    clock does not end what runs.
    """

    def now(self) -> datetime:
        """The time, aware, UTC."""
        return datetime.fromtimestamp(_STARTED + boottime(), UTC)

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """Wait on a condition that the caller holds until it is notified, or so many seconds at most."""
        condition.wait(timeout)


class ServerClock(SystemClock):
    """The API server's time, which goes on between its answers whatever happens to the local clock.

    Passes and drains reckon in it. If no answer came yet, it asks once; then the local clock counts.
    """

    def __init__(self, connection: Connection) -> None:
        """Take the time of the answers to this connection."""
        self._connection = connection
        self._asked = False

    def now(self) -> datetime:
        """The time, aware, UTC."""
        if not self._connection.time.known and not self._asked:
            self._asked = True
            with suppress(ClusterError):
                self._connection.send(Request("GET", VERSION, total=_PATIENCE))
        return self._connection.time.now()
