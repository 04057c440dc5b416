"""Turns signals that end a process into an event to wait for."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
