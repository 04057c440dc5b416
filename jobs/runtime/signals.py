"""Turns signals that end a process into an event to wait for."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_EVERY = 1.0
"""Seconds between two looks of a main thread that waits for a signal."""


@contextmanager
def ended_by_signals(stop: threading.Event) -> Iterator[None]:
    """Inside the context, SIGTERM and SIGINT set the event instead of ending the process."""

    def end(*_: object) -> None:
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
