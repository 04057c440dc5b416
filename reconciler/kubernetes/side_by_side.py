"""Writes of one pass side by side, as many at once as the API server likes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any, TypeVar

Value = TypeVar("Value")

FIRST = 8
"""Writes at once in the beginning."""

MOST = 16
"""Writes at once at most."""


class SideBySide:
    """Does works in threads. A throttled request halves how many at once, and success raises it again.

    `throttled` counts how often the API server has asked for fewer requests. The client of each request heeds
    how long it has to wait (Retry-After).
    """

    def __init__(self, throttled: Callable[[], int]) -> None:
        """Take the counter, which any thread may call."""
        self._throttled = throttled
        self._seen = throttled()
        self._most = float(FIRST)

    def __call__(self, works: Sequence[Callable[[], Value]]) -> Sequence[Value]:
        """Return the results in the order of the works; raises the first error, and then begins no other."""
        if len(works) <= 1:
            return [work() for work in works]
        run = _Run(works, self._at_once)
        threads = [
            threading.Thread(target=copy_context().run, args=(run.go_on,), name="writer", daemon=True)
            for _ in range(min(MOST, len(works)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return run.results()

    def _at_once(self) -> float:
        """Return how many works may be done at once, after another one was done."""
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
