"""Virtual time, what happened in it, and watches without a thread.

Future actions are on an agenda, and time moves only when the caller advances it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Condition
from types import TracebackType
from typing import Generic, TypeVar

from msgspec import Struct, field

from reconciler.model.errors import ReconcilerError


class VirtualClock:
    """A clock for one thread (port `Clock`). It runs the actions that become due, in order."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._agenda: list[tuple[datetime, int, Callable[[], object]]] = []
        self._number = 0

    def now(self) -> datetime:
        """Return the time, aware, UTC."""
        return self._now

    def at(self, moment: datetime, action: Callable[[], object]) -> None:
        """Run an action at a moment, or now if the moment has passed.

        Actions of one moment keep their order.
        """
        self._number += 1
        heapq.heappush(self._agenda, (max(moment, self._now), self._number, action))

    def after(self, pause: timedelta, action: Callable[[], object]) -> None:
        """Run an action after a delay."""
        self.at(self._now + pause, action)

    def next(self) -> datetime | None:
        """Return the time of the next action, None if there is none."""
        return self._agenda[0][0] if self._agenda else None

    def step(self) -> None:
        """Advance to the next action on the agenda, if there is one, and run it."""
        if self._agenda:
            moment, _, action = heapq.heappop(self._agenda)
            self._now = max(self._now, moment)
            action()

    def advance(self, until: datetime) -> None:
        """Advance up to and including a moment. An action that raises is removed from the agenda."""
        while self._agenda and self._agenda[0][0] <= until:
            self.step()
        self._now = max(self._now, until)

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """Advance by the timeout, because with one thread no one can notify the condition."""
        del condition
        if timeout is not None:
            self.advance(self._now + timedelta(seconds=timeout))
        elif (moment := self.next()) is not None:
            self.advance(moment)


class SkewedClock(VirtualClock):
    """The clock of a process, which is `ahead` of another one (behind it, if negative), and moves with it."""

    def __init__(self, true: VirtualClock) -> None:
        super().__init__(true.now())
        self._true = true
        self.ahead = timedelta()

    def now(self) -> datetime:
        """Return the time as the process believes it."""
        return self._true.now() + self.ahead

    def at(self, moment: datetime, action: Callable[[], object]) -> None:
        """Run an action at what is this moment by the clock as it is now."""
        self._true.at(moment - self.ahead, action)

    def next(self) -> datetime | None:
        """Return the time of the next action by this clock, None if there is none."""
        found = self._true.next()
        return found + self.ahead if found is not None else None

    def step(self) -> None:
        """Advance the other clock to its next action, and run it."""
        self._true.step()

    def advance(self, until: datetime) -> None:
        """Advance the other clock up to what is this moment by this clock."""
        self._true.advance(until - self.ahead)

    def after(self, pause: timedelta, action: Callable[[], object]) -> None:
        """Run an action after a delay."""
        self._true.after(pause, action)


class Actor(StrEnum):
    """Who did it."""

    US = "us"
    PLATFORM = "platform"
    CLUSTER = "cluster"
    SOMEBODY = "somebody"


class Happening(Struct, frozen=True):
    """One thing that happened; `subject` is a pod or budget. `node` and `subject` may be empty."""

    at: datetime
    actor: Actor
    what: str
    node: str = ""
    subject: str = ""
    detail: str = ""

    def __str__(self) -> str:
        """Return it as one line; equal happenings give equal lines."""
        words = (self.at.isoformat(), self.actor, self.what, self.node, self.subject, self.detail)
        return " ".join(word for word in words if word)


class Log(Struct):
    """Every happening so far; each of `listeners` is called with each new one."""

    happenings: list[Happening] = field(default_factory=list)
    listeners: list[Callable[[Happening], None]] = field(default_factory=list)

    def write(self, happening: Happening) -> None:
        """Add a happening and call the listeners."""
        self.happenings.append(happening)
        for listener in self.listeners:
            listener(happening)

    def of(self, actor: Actor, *whats: str) -> tuple[Happening, ...]:
        """Return what an actor did, limited to the names in `whats` if there are any."""
        return tuple(
            happening
            for happening in self.happenings
            if happening.actor is actor and (not whats or happening.what in whats)
        )


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
        return self._each()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
