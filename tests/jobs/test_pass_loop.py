"""When passes run: the loop, and its pace."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime import pass_loop
from jobs.runtime.pass_loop import (
    APART,
    ENDS,
    MOST_FIRST,
    PART,
    QUIET,
    TOGETHER,
    About,
    Cause,
    Pacer,
    PassLoop,
)
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
        self.failures.append((type(error).__name__, failures))

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
    assert passes.failures == [("OverflowError", 1), ("RecursionError", 2), ("UnicodeError", 3)]
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


def test_events_wait_while_a_pass_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_loop, "REST", 0.0)
    passes = Passes()
    passes.go.clear()
    with passes.loop:
        passes.wait(1)
        assert not passes.loop.wait_for_rest()
        passes.go.set()
        wait_for("the end of the pass", passes.loop.wait_for_rest)


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


NOISY = Cause("node noisy")
OTHER = Cause("node other")
URGENT = Cause("node other", About.NOTICE)
# Times are compared after additions of floats.
BIT = 1e-6


@dataclass
class Played:
    """When passes began, and for each change when the pass that served it began."""

    passes: list[float] = field(default_factory=list)
    served: list[tuple[float, Cause, float]] = field(default_factory=list)

    def delay(self, cause: Cause) -> list[float]:
        return [began - at for at, of, began in self.served if of == cause]


def play(changes: list[tuple[float, Cause]], takes: float = 0.0) -> Played:
    """Play changes, in the order of their times, through a loop whose passes take so many seconds."""
    pacer, played = Pacer(), Played()
    waiting: list[tuple[float, Cause]] = []
    rest = sorted(changes, key=lambda change: change[0])
    now = 0.0
    while rest or waiting:
        due = pacer.due()
        if due is not None and (not rest or max(due, now) <= rest[0][0]):
            began = max(due, now)
            pacer.begin(began)
            played.passes.append(began)
            played.served += [(at, cause, began) for at, cause in waiting]
            waiting.clear()
            now = began + takes
            while rest and rest[0][0] < now:
                at, cause = rest.pop(0)
                pacer.note(cause, at)
                waiting.append((at, cause))
            pacer.end(now)
        else:
            at, cause = rest.pop(0)
            now = max(now, at)
            pacer.note(cause, at)
            waiting.append((at, cause))
    return played


def flapping(cause: Cause, seconds: float, a_second: int = 20) -> list[tuple[float, Cause]]:
    return [(number / a_second, cause) for number in range(int(seconds * a_second))]


def test_changes_that_come_together_are_one_pass() -> None:
    together = [(5.0 + number * TOGETHER / 10, Cause(f"node {number}")) for number in range(9)]
    assert len(play(together).passes) == 1


@pytest.mark.parametrize("about", [About.NODE, About.NOTICE])
def test_a_node_that_changes_twenty_times_a_second_costs_a_pass_a_second(about: About) -> None:
    passes = play(flapping(Cause("node noisy", about), 60)).passes
    assert passes[0] == TOGETHER
    assert 55 <= len(passes) <= 61


def test_the_first_changes_of_many_nodes_have_a_limit() -> None:
    played = play([(number * 2 * TOGETHER, Cause(f"node {number}")) for number in range(300)])
    assert len(played.passes) <= (MOST_FIRST + QUIET / APART) * (30 / QUIET) + 1
    assert all(began - at <= APART + TOGETHER + BIT for at, _, began in played.served)


def test_ten_seconds_after_the_quick_passes_a_first_change_starts_a_pass_at_once_again() -> None:
    quick = [(number * 2 * TOGETHER, Cause(f"node {number}")) for number in range(2 * MOST_FIRST)]
    played = play([*quick, *flapping(NOISY, QUIET + 5), (QUIET + 3.42, OTHER)])
    assert played.delay(OTHER) == [pytest.approx(TOGETHER)]


def test_another_nodes_first_change_does_not_wait_behind_a_flapping_node() -> None:
    played = play([*flapping(NOISY, 10), (5.42, OTHER)])
    assert played.delay(OTHER) == [pytest.approx(TOGETHER)]


def test_an_urgent_change_does_not_wait_behind_flapping_nodes_nor_its_own_other_changes() -> None:
    noise = [change for number in range(200) for change in flapping(Cause(f"node {number}"), 10, 2)]
    played = play([*noise, *flapping(OTHER, 10), (5.42, URGENT), (6.9, URGENT)])
    assert played.delay(URGENT) == [pytest.approx(TOGETHER), pytest.approx(TOGETHER)]


def test_after_a_quiet_time_a_change_is_a_first_one_again() -> None:
    played = play([(0.0, NOISY), (0.2, NOISY), (1.1 + QUIET, NOISY)])
    assert played.delay(NOISY) == pytest.approx([TOGETHER, APART + TOGETHER - 0.2, TOGETHER])


def test_passes_that_take_long_leave_half_of_the_time_to_other_work() -> None:
    played = play(flapping(NOISY, 60), takes=3.0)
    assert len(played.passes) <= 60 / 6 + 1


def test_a_change_during_a_pass_is_served_by_the_next_one() -> None:
    pacer = Pacer()
    pacer.note(NOISY, 0.0)
    pacer.begin(0.05)
    pacer.note(OTHER, 0.06)
    pacer.end(0.5)
    assert pacer.due() == pytest.approx(0.06 + TOGETHER)


CHANGES = st.lists(
    st.tuples(
        st.floats(0, 30, allow_nan=False), st.builds(Cause, st.sampled_from(["a", "b", "c"]), st.booleans())
    ),
    max_size=120,
)


@given(CHANGES)
def test_every_change_is_served_in_time_and_no_cause_costs_more_than_a_pass_a_second(
    changes: list[tuple[float, Cause]],
) -> None:
    played = play(changes)
    assert len(played.served) == len(changes)
    assert all(0 <= began - at <= APART + TOGETHER + BIT for at, _, began in played.served)
    last: dict[Cause, float] = {}
    for at, cause, began in played.served:
        fresh = cause not in last or at - last[cause] >= QUIET
        if fresh and cause.urgent:
            assert began - at <= TOGETHER + BIT
        last[cause] = began


@given(CHANGES.map(lambda changes: [(at, Cause(cause.name)) for at, cause in changes]))
def test_passes_that_are_not_urgent_are_few(changes: list[tuple[float, Cause]]) -> None:
    passes = play(changes).passes
    assert bool(passes) == bool(changes)
    for began in passes:
        within = [one for one in passes if began <= one < began + QUIET]
        assert len(within) <= MOST_FIRST + QUIET / APART + 1


@given(CHANGES.map(lambda changes: [(at, NOISY) for at, _ in changes]))
def test_the_passes_for_one_cause_are_a_second_apart(changes: list[tuple[float, Cause]]) -> None:
    passes = play(changes).passes
    assert bool(passes) == bool(changes)
    assert all(after - before >= APART - BIT for before, after in pairwise(passes))


def test_drains_wait_for_the_passes_about_new_notices_and_for_nothing_else() -> None:
    pacer = Pacer()
    for cause in (Cause("settings", About.SETTINGS), Cause("drain of a", About.DRAIN), Cause("node a")):
        pacer.note(cause, 0.0)
        assert not pacer.bursts()

    notice = Cause("node b", About.NOTICE)
    pacer.note(notice, 0.0)
    assert pacer.bursts()

    pacer.begin(0.1)
    pacer.end(0.2)
    assert not pacer.bursts()
    # A node that keeps changing delays nobody.
    pacer.note(notice, 0.3)
    assert not pacer.bursts()


def test_after_a_long_pass_the_ends_of_drains_wait_and_notices_do_not() -> None:
    pacer = Pacer()
    pacer.begin(0.0)
    pacer.end(0.4)
    pacer.note(Cause("drain of a", About.DRAIN), 0.5)
    assert pacer.due() == pytest.approx(PART * 0.4)

    pacer.note(Cause("node b", About.NOTICE), 0.6)
    assert pacer.due() == pytest.approx(0.6 + TOGETHER)


def test_a_step_of_a_workflow_is_followed_at_once_and_the_same_one_again_waits() -> None:
    pacer = Pacer()
    step = Cause("default of a is in-maintenance", About.STEP)
    for at, due in ((0.1, 0.1), (0.2, 0.1 + APART)):
        pacer.note(step, at)
        # Its Events may be sent before another pass, and not before one that follows.
        assert pacer.rests(at) is (due > at)
        assert pacer.due() == pytest.approx(due)
        pacer.begin(due)
        pacer.end(due)


def test_the_ends_of_drains_come_together_in_a_pass() -> None:
    pacer = Pacer()
    pacer.begin(0.0)
    pacer.end(0.001)
    pacer.note(Cause("drain of a", About.DRAIN), 0.1)
    assert pacer.due() == pytest.approx(ENDS)
    # One that ends alone waits for nothing.
    pacer.begin(ENDS)
    pacer.end(ENDS + 0.001)
    pacer.note(Cause("drain of b", About.DRAIN), 5.0)
    assert pacer.due() == pytest.approx(5.0 + TOGETHER)
