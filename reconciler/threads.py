"""The one way to start a thread; tests/test_threads.py finds any other.

A thread can't start while the Pod or its node is at its limit of processes. A process that runs goes on, and
tries again later what needs the thread. So a caller changes its own state only after `start` has returned:
nothing may wait for a thread that does not run.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Condition, Thread
from typing import TYPE_CHECKING, TypeVar

from reconciler.model.errors import NoThread

if TYPE_CHECKING:
    from concurrent.futures import Future

Value = TypeVar("Value")


def start(name: str, work: Callable[[], object]) -> Thread:
    """Return a thread that does the work; NoThread if none can start. The end of the process ends it."""
    thread = Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise NoThread(
            f"the thread {name!r} can't start: {error}; raise the limit of processes of the Pod or its node"
        ) from error
    return thread


def begin_read(name: str, read: Callable[[], Value]) -> Future[Value]:
    """Return what a read in a thread of its own, which has this name, will give.

    Where no thread can start, it is read here and now: who asks waits for the answer anyway.
    """
    # Imported here, because the agent reads nothing in this way, and has no room for it.
    from concurrent.futures import Future
    from contextvars import copy_context

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


class Pool:
    """Threads for works that come one after the other: as many as have work at a time, and `most` at most.

    Where no further thread can start, those that run do the work.
    """

    def __init__(self, name: str, most: int) -> None:
        """Begin without threads; their names begin with this one."""
        self._name, self._most = name, most
        self._changed = Condition()
        self._works: deque[Callable[[], object]] = deque()
        self._threads: list[Thread] = []
        self._busy = 0
        self._closed = False

    def submit(self, work: Callable[[], object]) -> None:
        """Do the work soon; NoThread, without the work, if there is no thread at all."""
        with self._changed:
            if len(self._works) >= len(self._threads) - self._busy and len(self._threads) < self._most:
                try:
                    self._threads.append(start(f"{self._name}_{len(self._threads)}", self._run))
                except NoThread:
                    if not self._threads:
                        raise
            self._works.append(work)
            self._changed.notify()

    def close(self, patience: float | None = None) -> bool:
        """Begin no work that waits, and return whether all others have ended, in so many seconds at most."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        ends = time.monotonic() + patience if patience is not None else None
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()) if ends is not None else None)
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - whose work it is, looks for its errors itself
                # Imported here, because the agent has no pool, and no room for it.
                from reconciler.model.problems import internal

                internal(f"the threads {self._name}", error)
            with self._changed:
                self._busy -= 1

    def _next(self) -> Callable[[], object] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._works or self._closed)
            if self._closed:
                return None
            self._busy += 1
            return self._works.popleft()
