"""The threads around the core: they carry out its commands and pass the answers back."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from threading import Condition, Lock, Thread
from typing import TypeVar

from reconciler.drain.drainer.core import DrainCore
from reconciler.drain.drainer.messages import (
    BudgetNews,
    Command,
    Delete,
    Event,
    Evict,
    Limits,
    PodNews,
    Request,
    Start,
    Stop,
    Tick,
    Unwatch,
    Watch,
    WatchBudgets,
    WatchEnded,
    WatchPods,
    Write,
    WriteDone,
)
from reconciler.drain.drainer.requests import ask, failed
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.errors import ReconcilerError
from reconciler.model.pod import Pod
from reconciler.model.ports import Clock, Evictor

SHOWN_EVERY = timedelta(seconds=0.1)
"""How often `on_progress` gets the progress of drains that go on. An end is reported at once.

Something changes hundreds of times a second while pods leave, and the whole progress takes as long to compute
as all else that the drainer does then.
"""

CLOSED_WITHIN = timedelta(seconds=5)
"""How long `close` waits for the threads of the watches. A request for a list can't be interrupted."""

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")

_LONGEST_SLEEP = 3600.0
"""Seconds. Threads can't wait for every number of seconds; this thread looks again after an hour at most."""


class Drainer:
    """Carries out drains in the background, until `close`.

    Errors of requests are in the progress, and are not raised in the caller's thread. `limits.parallel`
    threads send writes, `limits.readers` send reads, each watch has its own thread, and one runs the core. An
    exception in the core fails the drains that run, is logged, and does not end the thread: the next order
    starts a drain again.
    """

    def __init__(
        self,
        evictor: Evictor,
        clock: Clock,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[DrainProgress], None] | None = None,
        before_own_pod: Callable[[], None] | None = None,
        on_evicted: Callable[[DrainOrder, Pod, bool], None] | None = None,
    ) -> None:
        """Start without drains.

        `on_progress` is called from the drainer's thread for each drain that has changed. `before_own_pod` is
        called once before the reconciler's own pod is evicted, to release what others wait for (the lock).
        `on_evicted` is called after each eviction or deletion (True), from the thread of the request, so it
        must not wait.
        """
        self._limits = limits or Limits()
        self._core = DrainCore(self._limits)
        self._evictor = evictor
        self._clock = clock
        self._on_progress = on_progress
        self._before_own_pod = before_own_pod
        self._on_evicted = on_evicted
        self._orders: dict[str, DrainOrder] = {}
        self._changed = Condition()
        self._events: deque[Event] = deque()
        self._waiting: deque[DrainOrder] = deque()
        self._core_lock = Lock()
        self._failure: BaseException | None = None
        self._ended = 0
        self._show_at: datetime | None = None
        self._running = 0
        self._closing = False
        self._watches: dict[int, AbstractContextManager[object]] = {}
        self._unwanted: set[int] = set()
        self._followers: list[Thread] = []
        self._writers: ThreadPoolExecutor | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._thread: Thread | None = None

    def start(self, order: DrainOrder) -> None:
        """Start or continue the drain of a node. A drain that has ended starts again.

        Raises the exception that ended the drainer's thread, if there is one: nothing is drained any more.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._closing:
                return
            if self._thread is None:
                self._writers = ThreadPoolExecutor(self._limits.parallel, thread_name_prefix="drain")
                self._readers = ThreadPoolExecutor(self._limits.readers, thread_name_prefix="drain-read")
                self._thread = Thread(target=self._run, name="drainer", daemon=True)
                self._thread.start()
            self._events.append(Start(order))
            self._waiting.append(order)
            self._orders[order.node] = order
            # Counted here, so that `wait` right after this call sees a running drain.
            self._running += 1
            self._changed.notify_all()

    def stop(self, node: str, because: str = "stopped") -> None:
        """Stop evictions on a node. Requests in flight are not cancelled."""
        self._put(Stop(node, because))

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return the progress of each drain since the start, by node.

        A drain runs from its order on, even if the drainer's thread has not seen the order yet.
        """
        with self._core_lock:
            shown = dict(self._core.progress())
            with self._changed:
                waiting = tuple(self._waiting)
        for order in waiting:
            one = shown.get(order.node)
            if one is None or one.uid != order.uid or one.phase is not Phase.RUNNING:
                slot = order.slots is not None
                shown[order.node] = DrainProgress(order.node, order.uid, Phase.RUNNING, slot=slot)
        return shown

    def wait(self, timeout: float | None) -> bool:
        """Wait until a drain ends or none runs, for at most `timeout` seconds. Return False after a timeout.

        It returns at once if no drain runs. It raises the exception of the drainer's thread, if there is one.
        """
        until = None if timeout is None else self._clock.now().timestamp() + timeout
        with self._changed:
            ended = self._ended
            while self._running > 0 and self._ended == ended and not self._closing:
                left = None if until is None else until - self._clock.now().timestamp()
                if left is not None and left <= 0:
                    return False
                self._clock.wait(self._changed, None if left is None else min(left, _LONGEST_SLEEP))
            if self._failure is not None:
                raise self._failure
            return True

    def close(self) -> None:
        """Stop everything, and return when no request is in flight and no thread runs.

        A watch that does not end within `CLOSED_WITHIN` is left to the end of the process.
        """
        with self._changed:
            self._closing = True
            thread, pools = self._thread, (self._writers, self._readers)
            self._changed.notify_all()
        if thread is not None:
            thread.join()
        for number in list(self._watches):
            self._leave(number)
        for pool in pools:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)
        self._join_followers()

    def _join_followers(self) -> None:
        # A thread in the middle of the network's code may crash the interpreter at its end.
        until = self._clock.now() + CLOSED_WITHIN
        for thread in self._followers:
            left = min(until - self._clock.now(), CLOSED_WITHIN)
            thread.join(max(left.total_seconds(), 0.0))
            if thread.is_alive():
                _log.info("a watch of the drainer has not ended yet", extra={"thread": thread.name})

    def _put(self, event: Event) -> None:
        with self._changed:
            self._events.append(event)
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while (events := self._next_events()) is not None:
                self._step(events)
        except BaseException as failure:
            with self._changed:
                self._failure = failure
                self._closing = True
                self._changed.notify_all()
            raise

    def _next_events(self) -> list[Event] | None:
        """Wait for events. Return None after `close`."""
        with self._changed:
            while not self._events and not self._closing:
                wakes = (self._core.next_wake(), self._show_at)
                wake = min((at for at in wakes if at is not None), default=None)
                left = None if wake is None else (wake - self._clock.now()).total_seconds()
                if left is not None and left <= 0:
                    return [Tick()]
                self._clock.wait(self._changed, None if left is None else min(left, _LONGEST_SLEEP))
            if self._closing:
                return None
            # Events that arrived in the meantime are handled together, so the core computes only once.
            events = list(self._events)
            self._events.clear()
            return events

    def _step(self, events: list[Event]) -> None:
        with self._core_lock:
            now = self._clock.now()
            try:
                commands = self._core.step_all(events, now)
            except Exception as error:  # noqa: BLE001 - one bug must not end all drains to come
                _log.exception("the drainer failed; the drains that run end, and start again when ordered")
                commands = self._core.fail_all(f"internal error: {type(error).__name__}", now)
            with self._changed:
                for _ in (event for event in events if isinstance(event, Start)):
                    self._waiting.popleft()
            running, ended = self._core.running(), self._core.ended()
            touched = self._core.touched() if self._is_shown(now, ended=ended != self._ended) else ()
        for command in commands:
            self._carry_out(command)
        with self._changed:
            self._running = running + sum(isinstance(event, Start) for event in self._events)
            if ended != self._ended or not self._running:
                self._ended = ended
                self._changed.notify_all()
        if self._on_progress is not None:
            for one in touched:
                self._report(one, self._on_progress)

    def _is_shown(self, now: datetime, *, ended: bool) -> bool:
        """Return whether to report what has changed by `now`. If not, set the moment for it."""
        if self._on_progress is None:
            return False
        due = self._show_at is not None and not now < self._show_at <= now + SHOWN_EVERY
        self._show_at = None if ended or due else self._show_at or now + SHOWN_EVERY
        return ended or due

    def _report(self, progress: DrainProgress, on_progress: Callable[[DrainProgress], None]) -> None:
        try:
            on_progress(progress)
        except Exception:  # noqa: BLE001 - any code may be behind it
            # A failure of the progress display must not stop the drains.
            _log.exception("the progress can't be shown", extra={"node": progress.node})

    def _carry_out(self, command: Command) -> None:
        match command:
            case WatchPods() | WatchBudgets():
                self._watch(command)
            case Unwatch(number):
                self._leave(number)
            case _:
                pool = self._writers if isinstance(command, Write) else self._readers
                assert pool is not None
                try:
                    pool.submit(self._ask, command)
                except RuntimeError as error:
                    # No thread can be started now. The core retries as after any request that failed.
                    _log.exception("a request of the drainer can't be sent", extra={"node": command.node})
                    self._put(failed(command, ReconcilerError(f"not sent: {error}")))

    def _ask(self, command: Request) -> None:
        try:
            if isinstance(command, Evict | Delete) and command.own and self._before_own_pod is not None:
                self._before_own_pod()
            answer: Event = ask(self._evictor, command, self._clock.now())
        except ReconcilerError as error:
            answer = failed(command, error)
        except Exception as error:  # noqa: BLE001 - a bug must not block the drain forever
            _log.exception("a request of the drainer failed", extra={"node": command.node})
            answer = failed(command, ReconcilerError(f"{type(error).__name__}: {error}"))
        self._put(answer)
        if isinstance(command, Evict | Delete) and isinstance(answer, WriteDone) and answer.error is None:
            self._say_evicted(command)

    def _say_evicted(self, command: Evict | Delete) -> None:
        order = self._orders.get(command.node)
        if self._on_evicted is None or order is None:
            return
        try:
            self._on_evicted(order, command.pod, isinstance(command, Delete))
        except Exception:  # noqa: BLE001 - the pod is evicted, whatever is said about it
            _log.exception("an eviction can't be reported", extra={"node": command.node})

    def _watch(self, command: Watch) -> None:
        node = command.node if isinstance(command, WatchPods) else None
        name = f"watch-{node or 'budgets'}"
        thread = Thread(target=self._follow, args=(command,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            _log.exception("a watch of the drainer can't be started", extra={"node": node})
            self._put(failed(command, ReconcilerError(f"not opened: {error}")))
            return
        self._followers = [*(one for one in self._followers if one.is_alive()), thread]

    def _follow(self, command: Watch) -> None:
        """Pass the events of a watch to the core until it ends or is stopped."""
        number, error = command.watch, None
        node = command.node if isinstance(command, WatchPods) else None
        try:
            if isinstance(command, WatchBudgets):
                for budget_change in self._entered(number, self._evictor.watch_budgets(command.namespace)):
                    self._put(BudgetNews(budget_change, number))
            else:
                for pod_change in self._entered(number, self._evictor.watch_pods(command.node)):
                    self._put(PodNews(command.node, number, pod_change))
        except ReconcilerError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - a bug must not block the drain forever
            _log.exception("a watch of the drainer failed", extra={"node": node})
            error = ReconcilerError(f"{type(failure).__name__}: {failure}")
        with self._changed:
            left = number in self._unwanted
            self._unwanted.discard(number)
        if not left:
            self._put(WatchEnded(node, number, error))

    def _entered(self, number: int, watch: AbstractContextManager[Iterator[_Item]]) -> Iterator[_Item]:
        items = watch.__enter__()
        with self._changed:
            self._watches[number] = watch
            unwanted = number in self._unwanted or self._closing
        try:
            if not unwanted:
                yield from items
        finally:
            self._exit(number)

    def _leave(self, number: int) -> None:
        with self._changed:
            self._unwanted.add(number)
        self._exit(number)

    def _exit(self, number: int) -> None:
        """Close a watch once, even if two threads try. A generator cannot be closed twice."""
        with self._changed:
            watch = self._watches.pop(number, None)
        if watch is not None:
            try:
                watch.__exit__(None, None, None)
            except Exception:  # noqa: BLE001 - a bug must not end the thread
                # It is left either way. The thread that runs the core leaves watches, too.
                _log.exception("a watch of the drainer can't be closed")
