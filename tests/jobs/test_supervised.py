"""Threads that watch: an error is logged, counted and reported, and the watch begins again."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import textwrap
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue

import pytest
import watchfiles

import jobs.runtime.supervised as supervised
import jobs.runtime.watches as watching
from jobs.runtime.health import Document, HealthServer
from jobs.runtime.pass_loop import Cause
from jobs.runtime.supervised import (
    LONGEST_LAST_READ,
    LONGEST_PAUSE,
    Ending,
    LastRead,
    Supervised,
    pause_after,
)
from jobs.runtime.watches import SETTINGS, FileWatcher
from reconciler.model.errors import Forbidden
from tests.support.controlplane.processes import wait_for

AT_ONCE: Callable[[int], float] = lambda _: 0.0  # noqa: E731


class Job:
    """A job that fails with each of these errors first, ends once by itself, and then works."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.began: Queue[str] = Queue()
        self.ending = Ending()
        self.thread = Supervised("watch of tests", self.run, self.ending, AT_ONCE)

    def run(self, thread: Supervised) -> None:
        self.began.put(thread.trouble())
        if self.errors:
            raise self.errors.pop(0)
        thread.well()
        thread.stop.wait(30)


def test_whatever_is_raised_it_begins_again_and_says_since_when(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(ValueError("year 0 is out of range"), RecursionError(), Forbidden("nodes is forbidden"))
    with caplog.at_level(logging.WARNING):
        job.thread.start()
        troubles = [job.began.get(timeout=30) for _ in range(4)]
        wait_for("work", lambda: not job.thread.trouble())
        job.thread.join()
    assert troubles[0] == ""
    assert troubles[1].startswith("the watch of tests failed once since 2")
    assert troubles[1].endswith("ValueError: year 0 is out of range")
    assert "failed 3 times since" in troubles[3]
    assert "Forbidden: nodes is forbidden" in troubles[3]
    traces = [record for record in caplog.records if record.exc_info]
    assert [record.exc_info[0] for record in traces if record.exc_info] == [ValueError, RecursionError]
    assert "works again" in caplog.records[-1].getMessage()
    assert not job.ending.stop.is_set()


def test_a_job_that_ends_by_itself_begins_again() -> None:
    calls: Queue[str] = Queue()
    thread = Supervised("watch of tests", lambda one: calls.put(one.trouble()), Ending(), AT_ONCE)
    thread.start()
    assert calls.get(timeout=30) == ""
    assert "it ended by itself" in calls.get(timeout=30)
    thread.join()


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(1)])
def test_what_no_thread_survives_ends_the_process(error: BaseException) -> None:
    job = Job(error)
    job.thread.start()
    assert job.ending.stop.wait(30)
    assert job.ending.error is error
    job.thread.join()


def test_pauses_grow_to_a_minute() -> None:
    assert all(0.5 <= pause_after(1) <= 1 for _ in range(20))
    assert all(LONGEST_PAUSE / 2 <= pause_after(failures) <= LONGEST_PAUSE for failures in (7, 100, 10**6))


def test_a_broken_watch_of_the_settings_file_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "maintenance.yaml"
    file.write_text("mode: Observe\n", encoding="utf-8")
    broken = [OSError("no space left on device (inotify)")]

    def watch(*arguments: object, **options: object) -> object:
        if broken:
            raise broken.pop()
        return watchfiles.watch(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(watching, "watch", watch)
    monkeypatch.setattr(supervised, "FIRST_PAUSE", 0.01)
    woken: Queue[Cause] = Queue()
    with FileWatcher(file, woken.put, Ending()) as watcher:
        wait_for("the second watch", lambda: not broken and not watcher.trouble())
        file.write_text("mode: Enforce\n", encoding="utf-8")
        assert woken.get(timeout=30) == SETTINGS


WAITING = """
    import os, signal, threading, time
    from jobs.runtime import supervised
    from jobs.runtime.supervised import ended_by_signals, wait_until_set

    supervised.LOOK_EVERY = 0.05
    stop, waits = threading.Event(), threading.Event()

    class Main(threading.Event):
        def wait(self, timeout=None):
            waits.set()
            return stop.wait(timeout)

    def end():
        waits.wait()
        # The main thread sleeps by the time that the kernel shows it in a futex.
        while open(f"/proc/{os.getpid()}/stat").read().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with ended_by_signals(stop):
        threading.Thread(target=end).start()
        wait_until_set(Main())
    print("ended")
"""


def test_a_signal_that_another_thread_gets_ends_the_wait_of_the_main_thread() -> None:
    command = [sys.executable, "-c", textwrap.dedent(WAITING)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)

    assert done.stdout == "ended\n"


HANGING = """
    import os, signal, threading, time
    from jobs.runtime.supervised import ended_by_signals

    stop = threading.Event()
    with ended_by_signals(stop):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
        print("goes on", flush=True)
        while True:
            time.sleep(1)
"""


def test_a_further_signal_ends_a_process_that_hangs_at_its_end() -> None:
    command = [sys.executable, "-c", textwrap.dedent(HANGING)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)

    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "")


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
