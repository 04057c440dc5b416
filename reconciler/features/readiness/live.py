"""Readiness as the page of a process, and of a report, reads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from jobs.runtime.environment import Target
from jobs.runtime.outside import cluster_of
from reconciler.features.readiness.findings import Readiness
from reconciler.features.readiness.judging import readiness_of
from reconciler.features.readiness.report import readiness_part
from reconciler.kubernetes.connection import Connection, Request, Stream
from reconciler.kubernetes.workloads import Volumes
from reconciler.model.errors import ClusterError, NoThread, Rejected
from reconciler.model.findings import FindingsPart, KnownFindings
from reconciler.model.limits import count_of
from reconciler.model.problems import internal
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from reconciler.threads import start

MOST_REQUESTS = 150
"""Requests of a process that also makes passes: 75,000 objects, which take about 150 MiB."""

LONGEST = 120.0
"""Seconds in which these requests must have begun."""


def read_readiness(connection: Connection, target: Target, settings: Settings) -> Readiness:
    """Return what would keep nodes from a drain now; raises ClusterError."""
    cluster = cluster_of(connection, target)
    return readiness_of(cluster, Volumes(connection), settings, connection.time.now)


def read_apart(target: Target, settings: Settings) -> Readiness:
    """Return the same with bounds, and on a connection of its own, so that no pass waits for it."""
    connection = BoundedConnection(target.kubeconfig, target.context, requests=MOST_REQUESTS, seconds=LONGEST)
    try:
        return read_readiness(connection, target, settings)
    finally:
        connection.close()


def for_page(read: Callable[[], Readiness]) -> KnownFindings:
    """Return what the page shows of what `read` returns, or why that failed. Raises nothing."""
    try:
        return KnownFindings(readiness_part(read()))
    except ClusterError as error:
        why = error.because
    except Exception as error:  # noqa: BLE001 - the rest of the page must be whole
        why = f"internal error: {internal('readiness', error)}"
    return KnownFindings(note=f"Readiness can't be read: {why}.")


APART = 15 * 60.0
"""Seconds between the starts of two reads at least, after one that failed or took long."""

SOON = 60.0
"""Seconds between them after one that took a hundredth of that: few objects are read again after a repair."""

_SHARE = 100

BEING_READ = "Readiness is being read. Load the page again in a moment."


IN_A_THREAD = partial(start, "readiness")


class LiveReadiness:
    """Reads readiness when it is asked for, in a thread of its own, and keeps what the page shows of it."""

    def __init__(
        self,
        read: Callable[[Settings], Readiness],
        *,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], object] = IN_A_THREAD,
    ) -> None:
        """Call `read` so rarely that it takes a hundredth of the time; it may raise anything.

        `clock` is in seconds.

        `start` starts the work that it is given, and returns at once.
        """
        self._read, self._clock, self._start = read, clock, start
        self._began: float | None = None
        self._apart = APART
        self._reading = False
        self._known: KnownFindings | None = None

    def known(self, settings: Settings) -> KnownFindings:
        """Return what is known now, and read it again by these settings if it is old. Raises nothing.

        The same object is returned until something changes. Call it from one thread at a time.
        """
        now = self._clock()
        old = self._began is None or now - self._began >= self._apart
        if self._known is None or (old and not self._reading):
            before = self._known
            part = before.part if before is not None else None
            # Before the thread, which replaces it.
            self._known, self._reading = KnownFindings(part, BEING_READ), True
            try:
                self._start(partial(self._work, settings, part))
            except NoThread as error:
                self._known, self._reading = before, False
                # Not kept, so that the next one who asks tries it again.
                return KnownFindings(part, f"Readiness can't be read: {error}.")
            self._began = now
        return self._known

    def _work(self, settings: Settings, before: FindingsPart | None) -> None:
        began = self._clock()
        found = for_page(partial(self._read, settings))
        took = self._clock() - began
        self._apart = APART if found.part is None else min(max(SOON, _SHARE * took), APART)
        self._known = found if found.part is not None else replace(found, part=before)
        self._reading = False


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
            raise Rejected(f"it takes more than {count_of(self._requests, 'request')}")
        if self._time() > self._ends:
            raise Rejected(f"it takes longer than {self._seconds:g} s")
        self._left -= 1
        with super().stream(request) as stream:
            yield stream
