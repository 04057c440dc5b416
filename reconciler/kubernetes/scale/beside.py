"""Work beside a pass: what no cordon needs is read and written in threads, and the pass waits a moment.

A cordon waits for the nodes and the ledger only. An API server that answers those may leave any other request
without an answer, or answer it byte by byte. So the pass gives each such request to a thread. It takes an
answer that comes in time, or an older one that still counts, or none: then what was asked is unknown.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct, field

from reconciler.model.errors import Late, NoThread, Unreachable
from reconciler.model.ports import MOST, What, attempt, no_answer_to
from reconciler.model.problems import expected
from reconciler.threads import start

log = logging.getLogger(__name__)

Value = TypeVar("Value")

PATIENCE = 1.0
"""Seconds for which a pass waits for such answers, all together."""

LEAST = 0.05
"""Seconds that each request gets also when these are used up: others may have been slow."""

REMEMBERED = 3600.0
"""Seconds for which it is known from when on answers count. No request takes so long."""

FRESH = 10.0
"""Seconds for which an answer that came late counts as new: the pass that it wakes takes it."""


class _Work(Struct, eq=False):
    """Work in a thread. `late`: a pass has gone on without its answer. `ended`: its answer is kept.

    `ahead`: this pass has not asked for the answer yet.
    """

    answer: Future[Any] = field(default_factory=Future)
    late: bool = False
    ended: bool = False
    ahead: bool = False


class _Answer(Struct, frozen=True):
    """An answer: until when it counts as new, and until when it counts if a newer one does not come."""

    value: Any
    fresh: float
    until: float


class ThreadsBeside:
    """Reads and writes beside a pass, each in a thread.

    It waits for each answer as long as it takes, until `begins` sets a limit.
    """

    def __init__(
        self, came: Callable[[], object] = lambda: None, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """Call `came`, in any thread, when an answer has come that a pass went on without."""
        self.came, self._seconds = came, seconds
        self._lock = threading.Lock()
        self._works: dict[What, _Work] = {}
        self._running = Counter[str]()
        self._answers: dict[What, _Answer] = {}
        self._since: dict[What, float] = {}
        """From when on an answer has to be asked for to count, where something newer is known."""
        self._left: float | None = None
        self.late = False
        """Whether the last pass went on without an answer."""

    def begins(self, patience: float | None = PATIENCE) -> None:
        """Begin a pass that waits for so many seconds in all; None: as long as it takes."""
        with self._lock:
            now = self._seconds()
            self._answers = {what: answer for what, answer in self._answers.items() if now < answer.until}
            self._since = {what: since for what, since in self._since.items() if now - since < REMEMBERED}
            self._left, self.late = patience, False

    @property
    def is_bounded(self) -> bool:
        """Whether the pass waits for a bounded time only."""
        return self._left is not None

    def begin(
        self, what: What, work: Callable[[], object], *, lasts: float = 0.0, counts: float = 0.0
    ) -> None:
        """Begin to read what this pass will ask for; wait for nothing."""
        with self._lock:
            before = self._works.get(what)
            if before is not None and before.ended:
                del self._works[what]
        if self._new(what) is None and (before is None or before.ended):
            self._start(what, work, lasts, counts, MOST, ahead=True)

    def read(
        self,
        what: What,
        work: Callable[[], Value],
        *,
        lasts: float = 0.0,
        counts: float = 0.0,
        most: int = MOST,
        needed: bool = False,
    ) -> Value:
        """Return what the work returns, or its error; Late if the pass does not wait for it.

        A pass without a limit does the work in its own thread.
        """
        read = partial(self._read, what, work, lasts, counts, most, needed=needed)
        return expected(no_answer_to(what), read)

    def _read(
        self, what: What, work: Callable[[], Value], lasts: float, counts: float, most: int, *, needed: bool
    ) -> Value:
        value: Value
        answer = self._new(what)
        if answer is not None:
            value = answer.value
            return value
        running = self._taken(what)
        if running is None and self._left is None:
            began = self._seconds()
            value = work()
            with self._lock:
                self._keep(what, value, began, began + lasts, began + counts)
            return value
        running = running or self._start(what, work, lasts, counts, most)
        failure: Unreachable = Late(f"no answer yet to: {_words(what)}")
        if running is not None and self._waits(running):
            try:
                value = running.answer.result()
            except Unreachable as error:
                failure = error
            else:
                return value
        with self._lock:
            answer = self._answers.get(what)
        if answer is not None and self._seconds() < answer.until:
            value = answer.value
            return value
        if needed:
            value = running.answer.result() if running is not None else work()
            return value
        raise failure

    def write(self, what: What, work: Callable[[], Value], *, most: int = MOST) -> Value:
        """Return what the work returns, or its error; Late if the pass does not wait for it.

        What is late goes on, and is not written again until it has ended.
        """
        before = self._taken(what)
        if before is not None and not self._waits(before):
            raise Late(f"{_words(what)}: the request before it has no answer yet")
        if self._left is None:
            return work()
        running = self._start(what, work, 0.0, None, most)
        if running is None or not self._waits(running):
            raise Late(f"{_words(what)}: no answer yet; a later pass sees what came of it")
        value: Value = running.answer.result()
        return value

    def note(self, what: What, value: object, *, counts: float) -> None:
        """Let this count as the last answer from now on."""
        self.forget(what)
        now = self._seconds()
        with self._lock:
            self._keep(what, value, now, now, now + counts)

    def forget(self, what: What) -> None:
        """Let no answer count that was asked for before."""
        with self._lock:
            self._since[what] = self._seconds()
            self._works.pop(what, None)
            self._answers.pop(what, None)

    def _taken(self, what: What) -> _Work | None:
        """Return the work that runs, or has ended and was begun ahead."""
        with self._lock:
            running = self._works.get(what)
            if running is not None:
                running.ahead = False
                if running.ended:
                    del self._works[what]
        return running

    def _new(self, what: What) -> _Answer | None:
        """Return an answer that counts as new."""
        with self._lock:
            answer = self._answers.get(what)
        return answer if answer is not None and self._seconds() < answer.fresh else None

    def _keep(self, what: What, value: object, asked: float, fresh: float, until: float) -> None:
        if asked >= self._since.get(what, asked):
            self._answers[what] = _Answer(value, fresh, max(fresh, until))

    def _start(
        self,
        what: What,
        work: Callable[[], Any],
        lasts: float,
        counts: float | None,
        most: int,
        *,
        ahead: bool = False,
    ) -> _Work | None:
        """Begin the work in a thread, None if too many of its kind run; without `counts`, nothing is kept."""
        kind, running = what[0], _Work(ahead=ahead)
        began = self._seconds()

        def run() -> None:
            value = attempt(work)
            ended = self._seconds()
            with self._lock:
                self._ends(what, running)
                if counts is not None and not isinstance(value, Exception):
                    fresh = ended + FRESH if running.late else began + lasts
                    self._keep(what, value, began, fresh, began + counts)
            if isinstance(value, Exception):
                if running.late:
                    log.warning("%s: no answer came in time, then it failed: %s", _words(what), value)
                running.answer.set_exception(value)
                return
            running.answer.set_result(value)
            if running.late:
                self.came()

        with self._lock:
            if self._left is not None and self._running[kind] >= most:
                self.late = True
                return None
            self._running[kind] += 1
        try:
            start(f"beside: {kind}", partial(copy_context().run, run))
        except NoThread as error:
            # What was asked is unknown, as without an answer.
            log.warning("%s: %s", _words(what), error)
            with self._lock:
                self._running[kind] -= 1
                self.late = True
            return None
        with self._lock:
            if not running.ended or running.ahead:
                self._works[what] = running
        return running

    def _ends(self, what: What, running: _Work) -> None:
        self._running[what[0]] -= 1
        running.ended = True
        if self._works.get(what) is running and not running.ahead:
            del self._works[what]

    def _waits(self, running: _Work) -> bool:
        """Wait until the work ends, or for as long as this pass may; return whether it has ended."""
        if self._left is None:
            wait([running.answer])
            return True
        began = self._seconds()
        wait([running.answer], 0.0 if running.late else max(self._left, LEAST))
        self._left = max(0.0, self._left - (self._seconds() - began))
        with self._lock:
            if running.ended:
                return True
            running.late = self.late = True
            return False


def _words(what: What) -> str:
    return " ".join(what)
