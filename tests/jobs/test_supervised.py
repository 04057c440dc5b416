"""Threads that watch: an error is logged, counted and reported, and the watch begins again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pytest
import watchfiles

import jobs.runtime.supervised as supervised
import jobs.runtime.watching as watching
from jobs.runtime.pass_loop import Cause
from jobs.runtime.supervised import LONGEST_PAUSE, Ending, Supervised, pause_after
from jobs.runtime.watching import FileWatcher
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
        assert woken.get(timeout=30).urgent
