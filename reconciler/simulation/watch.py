"""A watch without a thread: what it has to tell queues up, and whoever listens is told of each item."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")


class SimulatedWatch(Generic[Item]):
    """One watch; as an iterator it ends when nothing is queued, since nobody else could add to it."""

    def __init__(self, items: tuple[Item, ...], leave: Callable[[SimulatedWatch[Item]], None]) -> None:
        """Take what was listed, and what ends the watch."""
        self.items = deque(items)
        self.listener: Callable[[], None] | None = None
        self._leave = leave

    def push(self, item: Item) -> None:
        """Tell of one more change."""
        self.items.append(item)
        if self.listener is not None:
            self.listener()

    def take(self) -> tuple[Item, ...]:
        """Return all that is queued, and forget it."""
        taken = tuple(self.items)
        self.items.clear()
        return taken

    def close(self) -> None:
        """Tell nothing more."""
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

    def _each(self) -> Iterator[Item]:
        while self.items:
            yield self.items.popleft()
