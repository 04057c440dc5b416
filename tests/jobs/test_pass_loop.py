"""When passes are made: what begins one, how long it waits for others, and what an error changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime import pass_loop
from jobs.runtime.pass_loop import (
    APART,
    ENDS_APART,
    FIRST_APART,
    PART,
    QUIET,
    TOGETHER,
    About,
    Cause,
    PassLoop,
)
from jobs.runtime.supervised import Ending
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.timer import HandLoop, play

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
        self.loop.watchdog.works()
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
        wait_for("readiness", lambda: not passes.loop.watchdog.unready())
    assert passes.failures == [("OverflowError", 1), ("RecursionError", 2), ("UnicodeError", 3)]
    assert not passes.ending.stop.is_set()


def test_while_passes_fail_the_process_is_alive_and_not_ready_and_says_why() -> None:
    passes = Passes(None, *[ValueError(f"broken {number}") for number in range(100)])
    passes.loop = PassLoop(passes.run, HOUR, lambda *_: None, passes.ending, lambda _: HOUR)
    assert passes.loop.watchdog.unready() == "no pass has succeeded yet"
    with passes.loop:
        passes.wait(1)
        wait_for("readiness", lambda: not passes.loop.watchdog.unready())
        passes.loop.wake(Cause("node a"))
        passes.wait(2)
        wait_for("the reason", lambda: "ValueError: broken 0" in passes.loop.watchdog.unready())
        assert passes.loop.watchdog.unready().startswith("the pass failed once since 2")
        assert passes.loop.stuck() == ""
        # What wakes it does not wait for the pause after a failure.
        passes.loop.wake(Cause("node b"))
        passes.wait(3)
        wait_for("the count", lambda: "failed 2 times" in passes.loop.watchdog.unready())


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
    leaver.join(0.01)
    assert leaver.is_alive()
    passes.go.set()
    leaver.join(30)
    assert not leaver.is_alive()
    assert passes.count == 1


def test_the_schedule_begins_a_pass_each_interval() -> None:
    hand = HandLoop(every=30.0, takes=2.0)
    for _ in range(3):
        hand.ring()
    first, second, third = hand.played.passes
    assert (second - first, third - second) == (30.0, 30.0)


def test_a_pass_that_takes_longer_than_the_interval_is_followed_at_once() -> None:
    hand = HandLoop(every=2.0, takes=5.0)
    for _ in range(2):
        hand.ring()
    first, second = hand.played.passes
    assert second - first == 5.0


def test_what_the_plan_or_the_settings_want_leaves_time_to_other_work_after_a_long_pass() -> None:
    hand = HandLoop(takes=7.0, again=0.2)
    for _ in range(2):
        hand.ring()
    first, second = hand.played.passes
    assert second - first == PART * 7.0


NOISY = Cause("node noisy")
OTHER = Cause("node other")
NOTICE = Cause("node other", About.NOTICE)
# Times are compared after additions of floats.
BIT = 1e-6


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


def test_the_first_changes_of_many_nodes_are_some_passes_a_second() -> None:
    played = play([(number * 2 * TOGETHER, Cause(f"node {number}")) for number in range(300)])
    assert all(after - before >= FIRST_APART - BIT for before, after in pairwise(played.passes))
    assert all(began - at <= FIRST_APART + BIT for at, _, began in played.served)


@pytest.mark.parametrize("at", [5.0, 5.1, 5.42, 5.99])
def test_another_nodes_first_change_does_not_wait_for_the_turn_of_a_flapping_node(at: float) -> None:
    played = play([*flapping(NOISY, 10), (at, OTHER)])
    (delay,) = played.delay(OTHER)
    assert delay <= FIRST_APART + BIT


def test_a_notice_does_not_wait_behind_flapping_nodes_nor_its_own_other_changes() -> None:
    noise = [change for number in range(200) for change in flapping(Cause(f"node {number}"), 10, 2)]
    played = play([*noise, *flapping(OTHER, 10), (5.42, NOTICE), (6.9, NOTICE)])
    assert played.delay(NOTICE) == [pytest.approx(TOGETHER), pytest.approx(TOGETHER)]


def test_after_a_quiet_time_a_change_is_a_first_one_again() -> None:
    played = play([(0.0, NOISY), (0.3, NOISY), (1.1 + QUIET, NOISY)])
    assert played.delay(NOISY) == pytest.approx([TOGETHER, APART + TOGETHER - 0.3, TOGETHER])


def test_passes_that_take_long_leave_half_of_the_time_to_other_work() -> None:
    played = play(flapping(NOISY, 60), takes=3.0)
    assert len(played.passes) <= 60 / 6 + 1


def test_a_notice_during_a_long_pass_is_served_by_the_next_one_at_once() -> None:
    played = play([(0.0, NOISY), (0.2, NOTICE)], takes=0.5)
    assert played.passes == pytest.approx([TOGETHER, TOGETHER + 0.5])


def test_a_change_wakes_a_pass_that_the_schedule_would_make_later() -> None:
    hand = HandLoop(every=30.0)
    hand.play([(5.0, NOISY)])
    hand.ring()
    woken, scheduled = hand.played.passes[-2:]
    assert woken == pytest.approx(5.0 + TOGETHER)
    assert scheduled == pytest.approx(woken + 30.0)


CHANGES = st.lists(
    st.tuples(
        st.floats(0, 30, allow_nan=False),
        st.builds(Cause, st.sampled_from(["a", "b", "c"]), st.sampled_from(About)),
    ),
    max_size=120,
)


@given(CHANGES)
def test_every_change_is_served_in_time(changes: list[tuple[float, Cause]]) -> None:
    played = play(changes)
    assert len(played.served) == len(changes)
    assert all(0 <= began - at <= APART + TOGETHER + BIT for at, _, began in played.served)
    last: dict[Cause, float] = {}
    for at, cause, began in played.served:
        fresh = cause not in last or at - last[cause] >= QUIET
        if fresh and cause.about in (About.NOTICE, About.SETTINGS):
            assert began - at <= TOGETHER + BIT
        last[cause] = began


@given(CHANGES.map(lambda changes: [(at, Cause(cause.name)) for at, cause in changes]))
def test_the_passes_for_changes_of_nodes_are_few(changes: list[tuple[float, Cause]]) -> None:
    passes = play(changes).passes
    assert bool(passes) == bool(changes)
    assert all(after - before >= FIRST_APART - BIT for before, after in pairwise(passes))


@given(
    st.sampled_from([about for about in About if about is not About.STEP]),
    st.lists(st.floats(0, 30, allow_nan=False), min_size=1, max_size=120),
)
def test_the_passes_for_one_cause_are_a_second_apart(about: About, moments: list[float]) -> None:
    passes = play([(at, Cause("node noisy", about)) for at in moments]).passes
    assert passes
    assert all(after - before >= APART - BIT for before, after in pairwise(passes))


def test_drains_wait_for_the_passes_about_new_notices_and_for_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pass_loop, "BURST", 0.0)
    hand = HandLoop()
    for cause in (Cause("settings", About.SETTINGS), Cause("drain of a", About.DRAIN), Cause("node a")):
        hand.loop.wake(cause)
        assert hand.loop.wait_for_calm()

    hand.loop.wake(NOTICE)
    assert not hand.loop.wait_for_calm()

    hand.ring()
    assert hand.loop.wait_for_calm()
    # A node that keeps changing delays nobody.
    hand.loop.wake(NOTICE)
    assert hand.loop.wait_for_calm()


def test_after_a_long_pass_the_ends_of_drains_wait_and_notices_do_not() -> None:
    drain = Cause("drain of a", About.DRAIN)
    played = play([(0.0, OTHER), (0.5, drain), (0.6, NOTICE), (0.7, drain)], takes=0.4)
    assert played.delay(NOTICE) == [pytest.approx(TOGETHER)]
    assert played.passes == pytest.approx([TOGETHER, 0.6 + TOGETHER, 0.6 + TOGETHER + PART * 0.4])


def test_a_step_of_a_workflow_is_followed_at_once_and_the_same_one_again_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pass_loop, "REST", 0.0)
    step = Cause("default of a is in-maintenance", About.STEP)
    hand = HandLoop()
    for at, due in ((0.1, 0.1), (0.2, 0.1 + APART)):
        hand.now = at
        hand.loop.wake(step)
        # Its Events may be sent before another pass, and not before one that follows.
        assert hand.loop.wait_for_rest() is (due > at)
        hand.ring()
        assert hand.played.passes[-1] == pytest.approx(due)


def test_the_ends_of_drains_come_together_in_a_pass() -> None:
    ends = [(0.1, Cause("drain of a", About.DRAIN)), (0.2, Cause("drain of b", About.DRAIN))]
    # One that ends alone waits for nothing.
    played = play([(0.0, OTHER), *ends, (5.0, Cause("drain of c", About.DRAIN))])
    assert played.passes == pytest.approx([TOGETHER, TOGETHER + ENDS_APART, 5.0 + TOGETHER])
