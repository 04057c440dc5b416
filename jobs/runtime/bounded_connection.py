"""A connection for one piece of work that must not take long, nor become large."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.kubernetes.connection import Connection, Request, Stream
from reconciler.model.errors import Rejected


class BoundedConnection(Connection):
    """A connection that sends no request after so many of them, or so many seconds.

    A list has a request for each 500 objects, so the number of requests also limits what is in memory.
    """

    def __init__(
        self,
        kubeconfig: str | None,
        context: str | None,
        *,
        requests: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the credentials as `Connection` does. `clock` is in seconds."""
        super().__init__(kubeconfig, context, clock=clock)
        self._requests, self._seconds, self._left = requests, seconds, requests
        self._time, self._ends = clock, clock() + seconds

    @contextmanager
    def stream(self, request: Request) -> Iterator[Stream]:
        """Send the request as `Connection` does; Rejected beyond the bounds, which no retry helps."""
        if self._left <= 0:
            raise Rejected(f"it takes more than {self._requests} requests")
        if self._time() > self._ends:
            raise Rejected(f"it takes longer than {self._seconds:g} s")
        self._left -= 1
        with super().stream(request) as stream:
            yield stream
