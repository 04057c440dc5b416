"""The loop of passes: no error ends it but those that no repetition helps, and everybody can see them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Queue

import pytest

from jobs.runtime import pass_loop
from jobs.runtime.pass_loop import Cause, PassLoop
from jobs.runtime.supervised import Ending
from tests.support.controlplane.processes import wait_for

HOUR = 3600.0
AT_ONCE: Callable[[int], float] = lambda _: 0.0  # noqa: E731


class Passes:
    """Passes that do what the test says: one item of `script` each, then nothing but success."""

    def __init__(self, *script: BaseException | float | None) -> None:
        self.script = list(script)
        self.began: Queue[int] = Queue()
        self.failures: list[tuple[str, int]] = []
        self.ending = Ending()
        self.count = 0
        self.go = threading.Event()
        self.go.set()
        self.loop = PassLoop(self.run, HOUR, self.failed, self.ending, AT_ONCE)

    def run(self) -> float | None:
        self.count += 1
        self.began.put(self.count)
        self.go.wait(30)
        step = self.script.pop(0) if self.script else None
        if isinstance(step, BaseException):
            raise step
        self.loop.success.good()
        return step

    def failed(self, error: Exception, failures: int, again: float) -> None:
        assert again == 0
        self.failures.append((repr(error), failures))

    def wait(self, number: int) -> None:
        """Wait until the pass of this number has begun."""
        while self.began.get(timeout=30) < number:
            pass


def test_an_error_of_a_pass_is_reported_and_the_pass_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_loop, "APART", 0.01)
    passes = Passes(OverflowError("date value out of range"), RecursionError(), UnicodeError("\ud800"))
    with passes.loop:
        passes.wait(4)
        wait_for("readiness", lambda: not passes.loop.success.unready())
    assert [(name.partition("(")[0], count) for name, count in passes.failures] == [
        ("OverflowError", 1),
        ("RecursionError", 2),
        ("UnicodeError", 3),
    ]
    assert not passes.ending.stop.is_set()


def test_while_passes_fail_the_process_is_alive_and_not_ready_and_says_why() -> None:
    passes = Passes(None, *[ValueError(f"broken {number}") for number in range(100)])
    passes.loop = PassLoop(passes.run, HOUR, lambda *_: None, passes.ending, lambda _: HOUR)
    assert passes.loop.success.unready() == "no pass has succeeded yet"
    with passes.loop:
        passes.wait(1)
        wait_for("readiness", lambda: not passes.loop.success.unready())
        passes.loop.wake(Cause("node a"))
        passes.wait(2)
        wait_for("the reason", lambda: "ValueError: broken 0" in passes.loop.success.unready())
        assert passes.loop.success.unready().startswith("the pass failed once since 2")
        assert passes.loop.stuck() == ""
        # What wakes it does not wait for the pause after a failure.
        passes.loop.wake(Cause("node b"))
        passes.wait(3)
        wait_for("the count", lambda: "failed 2 times" in passes.loop.success.unready())


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(4), KeyboardInterrupt()])
def test_what_no_repetition_helps_ends_the_process(error: BaseException) -> None:
    passes = Passes(error)
    with passes.loop:
        assert passes.ending.stop.wait(30)
    assert passes.ending.error is error
    assert passes.count == 1
    assert type(error).__name__ in passes.loop.stuck()


def test_a_wake_during_a_pass_starts_another_one() -> None:
    passes = Passes()
    passes.go.clear()
    with passes.loop:
        passes.wait(1)
        passes.loop.wake(Cause("node a"))
        passes.go.set()
        passes.wait(2)


def test_the_plan_starts_a_pass_before_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_loop, "APART", 0.01)
    passes = Passes(0.01)
    with passes.loop:
        passes.wait(2)


def test_leaving_waits_for_the_running_pass_and_starts_no_other() -> None:
    passes = Passes()
    passes.go.clear()
    passes.loop.__enter__()
    passes.wait(1)
    passes.loop.wake(Cause("node a"))
    leaver = threading.Thread(target=passes.loop.__exit__)
    leaver.start()
    wait_for("leaving", lambda: passes.loop._leaving)
    assert leaver.is_alive()
    passes.go.set()
    leaver.join(30)
    assert not leaver.is_alive()
    assert passes.count == 1


def test_the_scheduler_starts_a_pass_each_interval() -> None:
    passes = Passes()
    (job,) = passes.loop._scheduler.get_jobs()
    assert job.trigger.interval.total_seconds() == HOUR
    with passes.loop:
        passes.wait(1)
        job.func()
        passes.wait(2)


def test_a_clock_that_was_set_back_delays_no_pass_for_long() -> None:
    passes = Passes()
    passes.loop = PassLoop(passes.run, 0.1, passes.failed, passes.ending, AT_ONCE)
    # As if the wall clock stood: the scheduler's job never comes.
    passes.loop._scheduler.remove_all_jobs()
    with passes.loop:
        passes.wait(2)


def test_settings_may_ask_for_passes_more_often_than_the_schedule() -> None:
    passes = Passes()
    passes.loop.at_least_every(0.01)
    with passes.loop:
        passes.wait(4)
        passes.loop.at_least_every(None)


def test_a_pass_that_takes_long_leaves_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Seconds()
    monkeypatch.setattr(pass_loop, "time", clock)
    loop = PassLoop(lambda: clock.sleep(7), HOUR, lambda *_: None, Ending())
    loop.at_least_every(0.2)

    loop._once()

    assert loop._next == 14.0


class Seconds:
    """A clock of seconds that goes on only in a pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
