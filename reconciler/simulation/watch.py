"""A watch without a thread: items are queued, and a listener is called for each one that arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import TracebackType
from typing import Generic, TypeVar

from reconciler.model.errors import ReconcilerError
from reconciler.simulation.clock import VirtualClock

Item = TypeVar("Item")

Delivery = Callable[[object], tuple[timedelta, ...]]
"""The delay of each copy of an item: no copy if the item is lost, two if it is repeated."""


def at_once(item: object) -> tuple[timedelta, ...]:
    """Deliver each item once, without delay."""
    del item
    return (timedelta(),)


class SimulatedWatch(Generic[Item]):
    """One watch.

    As an iterator it ends when nothing is queued, because with one thread nothing can be added. Listed items
    are never lost; `delivery` applies to later changes. Delayed changes may overtake each other. After
    `fail`, the error is raised when the queue is empty.
    """

    def __init__(
        self,
        items: tuple[Item, ...],
        leave: Callable[[SimulatedWatch[Item]], None],
        clock: VirtualClock,
        delivery: Delivery = at_once,
    ) -> None:
        """Start with the listed items; `delivery` says how changes arrive."""
        self.items = deque(items)
        self.error: ReconcilerError | None = None
        self.listener: Callable[[], None] | None = None
        self._leave = leave
        self._clock = clock
        self._delivery = delivery

    def push(self, item: Item) -> None:
        """Send a change."""
        for lag in self._delivery(item):
            if lag:
                self._clock.after(lag, lambda: self._arrive(item))
            else:
                self._arrive(item)

    def fail(self, error: ReconcilerError) -> None:
        """End the watch with an error."""
        self.error = error
        self._leave(self)
        if self.listener is not None:
            self.listener()

    def take(self) -> tuple[Item, ...]:
        """Return and clear the queue."""
        taken = tuple(self.items)
        self.items.clear()
        return taken

    def close(self) -> None:
        """Send nothing more."""
        self.listener = None
        self._leave(self)

    def __enter__(self) -> Iterator[Item]:
        """Return the items."""
        return self._each()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the watch."""
        self.close()

    def _arrive(self, item: Item) -> None:
        if self.error is None:
            self.items.append(item)
            if self.listener is not None:
                self.listener()

    def _each(self) -> Iterator[Item]:
        while self.items:
            yield self.items.popleft()
        if self.error is not None:
            raise self.error
