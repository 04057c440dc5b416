"""The last scrape: who scraped before gets the last values, and the process ends all the same."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from jobs.runtime.health import Document, HealthServer
from jobs.runtime.supervised import LONGEST_LAST_READ, Ending, LastRead

SHUTDOWN = 5.0


class Stop(threading.Event):
    """The event of the signals; a wait takes no time, but that of the clock. `meanwhile` comes before it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.waits: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.meanwhile()
        if not self.is_set():
            self.now += timeout
            self.waits.append(timeout)
        return self.is_set()


class Process:
    """A process that has been asked to end, and has given its lock back."""

    def __init__(self, health: HealthServer) -> None:
        self.stop = Stop()
        self.ending = Ending()
        self.ending.stop = self.stop
        self._health = health
        self._last = LastRead(self.ending, lambda: self.stop.now)

    def end(self) -> None:
        self.stop.set()
        self._last.wanted()
        self.stop.now += SHUTDOWN
        self._last.wait(self._health, "/metrics")


@pytest.fixture
def health() -> Iterator[HealthServer]:
    documents = {
        "/metrics": lambda: Document("text/plain", b"x 1\n"),
        "/": lambda: Document("text/html", b""),
    }
    with HealthServer(("127.0.0.1", 0), {}, documents=documents) as server:
        yield server


def get(health: HealthServer, path: str = "/metrics") -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{health.port}{path}", timeout=60) as answer:
        answer.read()


def read(health: HealthServer, path: str = "/metrics") -> None:
    """Scrape, until the server knows that the client has read all of it."""
    known = threading.Event()
    get(health, path)
    while not health.once_read(path, known.set):
        get(health, path)
    get(health, path)
    assert known.wait(60)


def test_who_never_scraped_is_not_waited_for(health: HealthServer) -> None:
    read(health, "/")
    process = Process(health)
    process.end()

    assert process.stop.waits == []


def test_the_wait_ends_in_time_for_the_grace_period_however_long_the_shutdown_took(
    health: HealthServer,
) -> None:
    read(health)
    process = Process(health)
    process.end()

    assert sum(process.stop.waits) == pytest.approx(LONGEST_LAST_READ - SHUTDOWN)
    assert LONGEST_LAST_READ < 30


def test_a_scrape_ends_the_wait(health: HealthServer) -> None:
    read(health)
    process = Process(health)

    def scrape() -> None:
        if len(process.stop.waits) == 2:
            get(health)
            # The server tells it from its own thread.
            assert threading.Event.wait(process.stop, 60)

    process.stop.meanwhile = scrape
    process.end()

    assert len(process.stop.waits) == 2


def test_a_further_signal_ends_the_wait(health: HealthServer) -> None:
    read(health)
    process = Process(health)
    process.stop.meanwhile = process.stop.set
    process.end()

    assert process.stop.waits == []


def test_a_process_that_ends_with_an_error_waits_for_nothing(health: HealthServer) -> None:
    read(health)
    process = Process(health)
    process.ending.error = MemoryError()
    process.end()

    assert process.stop.waits == []
