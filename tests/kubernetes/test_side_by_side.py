"""Works side by side: their order, how many at once, and what an error stops."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from reconciler.kubernetes.side_by_side import FIRST, MOST, SideBySide


class _Crowd:
    """Works that know how many of them were done at once; each waits for a crowd, for a bounded time."""

    def __init__(self, crowd: int) -> None:
        self._crowd, self._changed = crowd, threading.Condition()
        self._now = self.most = 0

    def work(self, number: int) -> int:
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._crowd, timeout=0.2)
            self._now -= 1
        return number


def test_results_have_the_order_of_the_works() -> None:
    crowd = _Crowd(1)
    assert SideBySide(lambda: 0)([partial(crowd.work, number) for number in range(40)]) == list(range(40))


def test_success_raises_how_many_are_done_at_once_up_to_the_most() -> None:
    crowd = _Crowd(MOST)
    SideBySide(lambda: 0)([partial(crowd.work, number) for number in range(300)])
    assert crowd.most == MOST


def test_each_throttled_request_halves_how_many_are_done_at_once() -> None:
    throttled = iter(range(1000))
    together = SideBySide(lambda: next(throttled))
    together([partial(_Crowd(1).work, number) for number in range(20)])
    crowd = _Crowd(FIRST)
    together([partial(crowd.work, number) for number in range(5)])
    assert crowd.most == 1


def test_the_first_error_is_raised_and_no_other_work_begins() -> None:
    begun: list[int] = []
    failed = threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            failed.set()
            raise ValueError("lost")
        failed.wait(5)

    with pytest.raises(ValueError, match="lost"):
        SideBySide(lambda: 0)([partial(work, number) for number in range(1000)])
    assert len(begun) <= 2 * MOST
