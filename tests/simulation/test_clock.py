"""The virtual clock: order, time that stands still, and actions that fail."""

from datetime import timedelta
from threading import Condition

import pytest

from reconciler.simulation.clock import VirtualClock
from tests.simulation.building import START

SECOND = timedelta(seconds=1)


def test_actions_are_done_in_the_order_of_their_moments_and_then_of_their_asking() -> None:
    clock, done = VirtualClock(START), list[str]()
    clock.after(2 * SECOND, lambda: done.append("late"))
    clock.after(SECOND, lambda: done.append("first"))
    clock.after(SECOND, lambda: done.append("second"))

    clock.advance(START + 5 * SECOND)

    assert done == ["first", "second", "late"]
    assert clock.now() == START + 5 * SECOND


def test_an_action_sees_its_own_moment_and_may_ask_for_more_in_the_same_breath() -> None:
    clock, seen = VirtualClock(START), list[int]()

    def again() -> None:
        seen.append((clock.now() - START).seconds)
        if len(seen) < 3:
            clock.after(SECOND, again)

    clock.after(SECOND, again)
    clock.advance(START + 10 * SECOND)

    assert seen == [1, 2, 3]


def test_what_lies_in_the_past_is_done_now_and_what_is_due_at_the_end_is_done() -> None:
    clock, done = VirtualClock(START), list[str]()
    clock.at(START - 60 * SECOND, lambda: done.append("past"))
    clock.at(START + SECOND, lambda: done.append("end"))
    clock.at(START + 2 * SECOND, lambda: done.append("beyond"))

    clock.advance(START + SECOND)

    assert done == ["past", "end"]
    assert clock.next() == START + 2 * SECOND


def test_an_action_that_raises_is_not_done_again() -> None:
    clock = VirtualClock(START)

    def fail() -> None:
        raise RuntimeError

    clock.after(SECOND, fail)
    with pytest.raises(RuntimeError):
        clock.advance(START + 5 * SECOND)

    assert clock.now() == START + SECOND
    clock.advance(START + 5 * SECOND)
    assert clock.next() is None


def test_waiting_lets_the_time_pass() -> None:
    clock, condition = VirtualClock(START), Condition()
    with condition:
        clock.wait(condition, 1.5)
        assert clock.now() == START + timedelta(seconds=1.5)
        clock.after(SECOND, lambda: None)
        clock.wait(condition, None)
    assert clock.now() == START + timedelta(seconds=2.5)
