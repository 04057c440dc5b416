"""One read for many nodes: those that wait for the same kind of read get one answer, if that is less work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future
from functools import partial
from typing import Generic, TypeVar

from reconciler.model.ports import attempt

Value = TypeVar("Value")

READS = 4
"""Reads at once of those that may be sent together."""

GATHER = 0.25
"""Seconds for which a read waits for others that may be sent together with it."""

GATHERS_EVERY = 1.0
"""Seconds until a read waits again for others after too few have come."""


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
            leads = mine in self._waiting
            if leads:
                # Who only fetches an answer leaves it as it is: another one may gather.
                self._gathers = True
                self._turns -= 1
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
        answers = attempt(partial(self._together, set(taken.values())))
        for asked in taken:
            if isinstance(answers, Exception):
                asked.set_exception(answers)
            else:
                asked.set_result(answers)
