"""Many requests at a time: writes side by side, as many as the API server likes, and reads together."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from reconciler.model.errors import NoThread
from reconciler.threads import start

Value = TypeVar("Value")

FIRST = 8
"""Writes at once in the beginning."""

MOST = 16
"""Writes at once at most."""

READS = 4
"""Reads at once of those that may be sent together."""

GATHER = 0.25
"""Seconds for which a read waits for others that may be sent together with it."""

GATHERS_EVERY = 1.0
"""Seconds until a read waits again for others after too few have come."""


def begin_read(name: str, read: Callable[[], Value]) -> Future[Value]:
    """Return what a read in a thread of its own, which has this name, will give.

    Where no thread can start, it is read here and now: who asks waits for the answer anyway.
    """
    future = Future[Value]()

    def run() -> None:
        try:
            future.set_result(read())
        except Exception as error:  # noqa: BLE001 - the one that waits for the answer raises it
            future.set_exception(error)

    try:
        start(name, partial(copy_context().run, run))
    except NoThread:
        run()
    return future


class SideBySide:
    """Does works in threads. A throttled request halves how many at once, and success raises it again.

    `throttled` counts how often the API server has asked for fewer requests. The client of each request heeds
    how long it has to wait (Retry-After).
    """

    def __init__(self, throttled: Callable[[], int], done: Callable[[], object] = lambda: None) -> None:
        """Take the counter, and what is called after each work; any thread may call both."""
        self._throttled, self._done = throttled, done
        self._seen = throttled()
        self._most = float(FIRST)

    def __call__(self, works: Sequence[Callable[[], Value]]) -> Sequence[Value]:
        """Return the results in the order of the works; raises the first error, and then begins no other."""
        if len(works) <= 1:
            return [work() for work in works]
        run = _Run(works, self._at_once)
        threads: list[threading.Thread] = []
        # This thread is one of them, so all is done where no other one can start.
        with suppress(NoThread):
            threads.extend(
                start("writer", partial(copy_context().run, run.go_on))
                for _ in range(min(MOST, len(works)) - 1)
            )
        run.go_on()
        for thread in threads:
            thread.join()
        return run.results()

    def _at_once(self) -> float:
        """Return how many works may be done at once, after another one was done."""
        self._done()
        count = self._throttled()
        if count > self._seen:
            self._seen, self._most = count, max(1.0, self._most / 2)
        else:
            # One more after each whole round.
            self._most = min(float(MOST), self._most + 1 / self._most)
        return self._most


class _Run:
    """The works of one call, which its threads share."""

    def __init__(self, works: Sequence[Callable[[], Any]], at_once: Callable[[], float]) -> None:
        self._works, self._at_once = works, at_once
        self._waiting = deque(range(len(works)))
        self._done: dict[int, Any] = {}
        self._error: BaseException | None = None
        self._running = 0
        self._most = at_once()
        self._changed = threading.Condition()

    def go_on(self) -> None:
        """Do one work after the other, until none is left or one has failed."""
        while (number := self._next()) is not None:
            try:
                result = self._works[number]()
            except BaseException as error:  # noqa: BLE001 - `results` raises it
                self._end(error=error)
            else:
                self._done[number] = result
                self._end()

    def results(self) -> list[Any]:
        """Return all results in order; raises the first error."""
        if self._error is not None:
            raise self._error
        return [self._done[number] for number in range(len(self._works))]

    def _next(self) -> int | None:
        with self._changed:
            self._changed.wait_for(lambda: self._running < self._most or self._is_over())
            if self._is_over():
                return None
            self._running += 1
            return self._waiting.popleft()

    def _is_over(self) -> bool:
        return not self._waiting or self._error is not None

    def _end(self, error: BaseException | None = None) -> None:
        with self._changed:
            self._error = self._error or error
            self._running -= 1
            self._most = self._at_once()
            self._changed.notify_all()


class Together(Generic[Value]):
    """Reads what is on a node. One request answers all nodes that wait, where that is the smaller work."""

    def __init__(
        self,
        alone: Callable[[str], Value],
        together: Callable[[Set[str]], Mapping[str, Value]],
        enough: Callable[[], float],
        many: Callable[[], int],
        *,
        turns: int = READS,
        gather: float = GATHER,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Read by `alone`, `turns` at once, or by `together` if `enough` nodes wait.

        `together` may leave out nodes, which are read alone. `many` is how many nodes may be read soon, 0 if
        they are few. If these are enough, a read waits `gather` seconds for them.
        """
        self._alone, self._together, self._enough, self._many = alone, together, enough, many
        self._sleep, self._gather = sleep, gather
        self._changed, self._turns, self._gathers = threading.Condition(), turns, False
        self._gather_at = 0.0
        self._waiting: dict[Future[Mapping[str, Value]], str] = {}
        self.asked = 0
        """How many have asked so far."""

    def of(self, node: str) -> Value:
        """Return what is on the node now, or has been since this call; raises what the read raises."""
        mine = Future[Mapping[str, Value]]()
        with self._changed:
            self.asked += 1
            self._waiting[mine] = node
            self._changed.wait_for(lambda: mine not in self._waiting or (self._turns and not self._gathers))
            leads = self._gathers = mine in self._waiting
            self._turns -= leads
        if leads:
            try:
                taken = self._take(mine)
                if len(taken) == 1:
                    return self._alone(node)
                self._answer(taken)
            finally:
                with self._changed:
                    self._turns += 1
                    self._changed.notify_all()
        answers = mine.result()
        return answers[node] if node in answers else self._alone(node)

    def _take(self, mine: Future[Mapping[str, Value]]) -> Mapping[Future[Mapping[str, Value]], str]:
        """Return who gets the answer of the next request."""
        together = False
        try:
            many = self._many()
            hoped = max(many, len(self._waiting))
            together = hoped > 1 and self._enough() <= hoped
            few = many and self._enough() > len(self._waiting)
            if together and few and time.monotonic() >= self._gather_at:
                self._sleep(self._gather)
                self._gather_at = time.monotonic() + GATHERS_EVERY
            together = together and self._enough() <= len(self._waiting)
            if together:
                self._gather_at = 0.0
        finally:
            with self._changed:
                taken = dict(self._waiting) if together else {mine: self._waiting[mine]}
                for each in taken:
                    del self._waiting[each]
                self._gathers = False
                self._changed.notify_all()
        return taken

    def _answer(self, taken: Mapping[Future[Mapping[str, Value]], str]) -> None:
        try:
            answers = self._together(set(taken.values()))
        except Exception as error:  # noqa: BLE001 - it is raised again where the answer is awaited
            for asked in taken:
                asked.set_exception(error)
        else:
            for asked in taken:
                asked.set_result(answers)
