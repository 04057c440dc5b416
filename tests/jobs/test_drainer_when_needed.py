"""The drainer of a process that has the lock: it is made for the first order, and again after its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from jobs.runtime.acting import DrainerWhenNeeded
from reconciler.drain.drainer import Drainer
from reconciler.model.drains import DrainOrder
from tests.support.builders import NOW

ORDER = DrainOrder("a", "uid-a", NOW, None, why="Reboot")


class _Ends:
    """A drainer whose thread has ended."""

    def start(self, order: DrainOrder) -> None:
        raise MemoryError

    def progress(self) -> dict[str, str]:
        return {"a": "runs for ever"}


class _Works:
    """A drainer that works."""

    def __init__(self) -> None:
        self.orders: list[DrainOrder] = []

    def start(self, order: DrainOrder) -> None:
        self.orders.append(order)


def test_after_the_end_of_its_thread_the_next_order_makes_another_one() -> None:
    works = _Works()
    made = iter([_Ends(), works])
    drainer = DrainerWhenNeeded(cast("Callable[[], Drainer]", lambda: next(made)))
    with pytest.raises(MemoryError):
        drainer.start(ORDER)
    assert drainer.progress() == {}
    drainer.start(ORDER)

    assert works.orders == [ORDER]
