"""Threads that do not end with an error: it is logged, counted and reported, and the job starts again."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from msgspec import Struct

from jobs.runtime.health import HealthServer
from jobs.runtime.log_line import Level, LogEvent, write_events
from reconciler.http.retrying import CHANCE
from reconciler.model.errors import ReconcilerError
from reconciler.threads import start

log = logging.getLogger(__name__)

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
LONGEST_REASON = 500


class Ending:
    """Asks the process to end: by a signal, or by an error that no thread can survive."""

    def __init__(self) -> None:
        """Start as a process that does not end."""
        self.stop = threading.Event()
        self.error: BaseException | None = None

    def fatal(self, error: BaseException) -> None:
        """End the process with this error; the first one counts."""
        if self.error is None:
            self.error = error
        self.stop.set()


def can_be_repeated(error: BaseException) -> bool:
    """Return whether work that ended with the error is worth another try in the same process."""
    return isinstance(error, Exception) and not isinstance(error, MemoryError)


def pause_after(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row: up to a minute, at random in part."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * float(2 ** min(failures - 1, 10)))
    return longest * CHANCE.uniform(0.5, 1.0)


class Trouble(Struct, frozen=True):
    """Failures in a row: how many, since when (UTC), and the last reason."""

    failures: int
    since: datetime
    because: str

    @staticmethod
    def after(before: Trouble | None, error: BaseException) -> Trouble:
        """Return the trouble with one failure more."""
        because = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
        if before is None:
            return Trouble(1, datetime.now(UTC), because)
        return Trouble(before.failures + 1, before.since, because)

    def __str__(self) -> str:
        """Return one line: how often, since when, and why."""
        times = "once" if self.failures == 1 else f"{self.failures} times"
        return f"failed {times} since {self.since:%Y-%m-%dT%H:%M:%SZ}: {self.because}"


class Supervised:
    """A thread that does one job until it is stopped. A job that ends or fails starts again after a pause."""

    def __init__(
        self,
        name: str,
        job: Callable[[Supervised], None],
        ending: Ending,
        pause: Callable[[int], float] = pause_after,
    ) -> None:
        """Take the name for logs, and the job, which returns once `stop` is set.

        The job calls `well` while it works. `pause` gives the seconds after so many failures in a row.
        """
        self.stop = threading.Event()
        self._name = name
        self._job = job
        self._ending = ending
        self._pause = pause
        self._trouble: Trouble | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; NoThread if that is not possible now."""
        self._thread = start(self._name, self._run)

    def join(self) -> None:
        """Set `stop`, and wait for the end of the job."""
        self.stop.set()
        if self._thread is not None:
            self._thread.join()

    def well(self) -> None:
        """Note that the job works: the count of failures starts again."""
        if self._trouble is not None:
            log.warning("the %s works again; it %s", self._name, self._trouble)
            self._trouble = None

    def trouble(self) -> str:
        """Return what is wrong and since when, empty if nothing is."""
        trouble = self._trouble
        return "" if trouble is None else f"the {self._name} {trouble}"

    def _run(self) -> None:
        while not self.stop.is_set():
            try:
                self._job(self)
                if self.stop.is_set():
                    return
                raise RuntimeError("it ended by itself")
            except BaseException as error:
                if self.stop.is_set() and isinstance(error, Exception):
                    return
                if not can_be_repeated(error):
                    self._ending.fatal(error)
                    return
                self._trouble = Trouble.after(self._trouble, error)
                # Errors that the program raises on purpose explain themselves.
                trace = not isinstance(error, ReconcilerError)
                log.error("the %s", f"{self._name} {self._trouble}", exc_info=trace)
            self.stop.wait(self._pause(self._trouble.failures))


LOOK_EVERY = 1.0
"""Seconds between two looks of a main thread that waits for a signal."""


@contextmanager
def ended_by_signals(stop: threading.Event) -> Iterator[None]:
    """Inside the context, SIGTERM and SIGINT set the event instead of ending the process.

    A further signal, while the event is set, ends the process at once: nobody waits for what hangs.
    """
    asked = False

    def end(number: int, _: object) -> None:
        nonlocal asked
        if asked and stop.is_set():
            os._exit(128 + number)
        asked = True
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_until_set(
    stop: threading.Event, ends: float = float("inf"), clock: Callable[[], float] = time.monotonic
) -> None:
    """Return once the event is set, or the clock shows `ends` (seconds).

    It is for the main thread, which runs the handlers of signals. The kernel may give a signal to another
    thread. That does not wake the main thread, so it looks again every second.
    """
    while (left := ends - clock()) > 0 and not stop.wait(min(left, LOOK_EVERY)):
        pass


LONGEST_LAST_READ = 20.0
"""Seconds after the signal in which the last read may come. Kubernetes kills a Pod after 30 by default."""


class LastRead:
    """Waits until a document was read once more, with what the end of the process has changed."""

    def __init__(self, ending: Ending, clock: Callable[[], float] = time.monotonic) -> None:
        """Take what asks the process to end; `clock` is in seconds."""
        self._ending, self._clock = ending, clock
        self._ends = 0.0

    def wanted(self) -> None:
        """Note that the process was just asked to end."""
        self._ends = self._clock() + LONGEST_LAST_READ

    def wait(self, health: HealthServer, path: str) -> None:
        """Wait for the next read of this path, if there was one before, for a short time after `wanted`.

        A further signal ends the wait. Call it once nothing else waits for `ending.stop`, which it clears.
        """
        if not path or self._ending.error is not None:
            return  # Kubernetes is to start the process again soon
        stop = self._ending.stop
        stop.clear()
        if health.once_read(path, stop.set):
            write_events(LogEvent.LAST_READ, {}, level=Level.INFO)
            wait_until_set(stop, self._ends, self._clock)
