"""The threads around the core: they carry out its commands and pass the answers back."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from threading import Condition, Lock, Thread
from typing import TypeVar

from msgspec import Struct

from reconciler.drain.drainer.core import DrainCore
from reconciler.drain.drainer.messages import (
    BudgetNews,
    CheckNode,
    Command,
    Delete,
    Event,
    Evict,
    Limits,
    NodeSeen,
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
from reconciler.drain.drainer.node_drain import stops
from reconciler.drain.drainer.requests import ask, failed
from reconciler.model.drains import DrainOrder, DrainProgress, Eviction, Phase, SlotUse
from reconciler.model.errors import NoThread, ReconcilerError, TooLate
from reconciler.model.pod import Pod
from reconciler.model.ports import Clock, Evictor, NodeRead
from reconciler.threads import Pool, start

SHOWN_EVERY = timedelta(seconds=0.1)
"""How often `on_progress` gets the progress of drains that go on. An end is reported at once.

Something changes hundreds of times a second while pods leave, and the whole progress takes as long to compute
as all else that the drainer does then.
"""

SHOWN_SO_OFTEN = 20
"""Up to so many drains. The progress of more is reported less often, in proportion."""

READERS = 200
"""Reads in flight. Writes that hang keep none of them waiting."""

LOOKERS = 10
"""Reads of nodes in flight. Evictions wait for them, so nothing else keeps them waiting."""

CLOSED_WITHIN = timedelta(seconds=2)
"""How long `close` waits for requests in flight and for watches. A webhook may keep an eviction for 30 s."""

_log = logging.getLogger(__name__)
_Item = TypeVar("_Item")

_LONGEST_SLEEP = 3600.0
"""Seconds. Threads can't wait for every number of seconds; this thread looks again after an hour at most."""


@contextmanager
def _expected(what: str, node: str | None) -> Iterator[None]:
    """Make a ReconcilerError of each other error: a bug in a thread must not block the drain forever."""
    try:
        yield
    except ReconcilerError:
        raise
    except Exception as error:
        _log.exception(what, extra={"node": node})
        raise ReconcilerError(f"{type(error).__name__}: {error}") from error


def _told(what: str, node: str | None, tell: Callable[[], object]) -> None:
    """Tell others: any code may be behind it, and must end no thread of the drainer."""
    try:
        tell()
    except Exception:  # noqa: BLE001 - what happened has happened, whatever is said about it
        _log.exception(what, extra={"node": node})


class WatchThreads:
    """The open watches by number, each of them followed by a thread."""

    def __init__(self, evictor: Evictor, clock: Clock, put: Callable[[Event], None]) -> None:
        """Use this port and clock; `put` gets what the watches say, from their threads."""
        self._evictor, self._clock, self._put = evictor, clock, put
        self._lock = Lock()
        self._watches: dict[int, AbstractContextManager[object]] = {}
        self._unwanted: set[int] = set()
        self._threads: list[Thread] = []
        self._closed = False

    def open(self, command: Watch) -> None:
        """Follow a watch in a thread of its own."""
        node = command.node if isinstance(command, WatchPods) else None
        try:
            self._threads.append(start(f"watch-{node or 'budgets'}", partial(self._follow, command)))
        except NoThread as error:
            # The core retries as after any watch that failed.
            _log.warning("a watch of the drainer can't be opened: %s", error, extra={"node": node})
            self._put(failed(command, error))
            return
        if len(self._threads) > 2 * len(self._watches) + 64:
            self._threads = [started for started in self._threads if started.is_alive()]

    def leave(self, number: int) -> None:
        """End a watch, also one that is not open yet."""
        with self._lock:
            self._unwanted.add(number)
        self._exit(number)

    def leave_all(self) -> None:
        """End all watches."""
        with self._lock:
            self._closed = True
        for number in list(self._watches):
            self.leave(number)

    def join(self, left: Callable[[], float]) -> None:
        """Wait for the threads of watches that were left, for as many seconds as `left` returns."""
        # A thread in the middle of the network's code may crash the interpreter at its end.
        for thread in self._threads:
            thread.join(left())
            if thread.is_alive():
                _log.info("a watch of the drainer has not ended yet", extra={"thread": thread.name})

    def _follow(self, command: Watch) -> None:
        """Pass the events of a watch to the core until it ends or is stopped."""
        number, error = command.watch, None
        node = command.node if isinstance(command, WatchPods) else None
        try:
            with _expected("a watch of the drainer failed", node):
                if isinstance(command, WatchBudgets):
                    budgets = self._evictor.watch_budgets(command.namespace)
                    for budget_change in self._entered(number, budgets):
                        self._put(BudgetNews(budget_change, number))
                else:
                    for pod_change in self._entered(number, self._evictor.watch_pods(command.node)):
                        self._put(PodNews(command.node, number, pod_change))
        except ReconcilerError as failure:
            error = failure
        with self._lock:
            left = number in self._unwanted
            self._unwanted.discard(number)
        if not left:
            self._put(WatchEnded(node, number, error))

    def _entered(self, number: int, watch: AbstractContextManager[Iterator[_Item]]) -> Iterator[_Item]:
        items = watch.__enter__()
        with self._lock:
            self._watches[number] = watch
            unwanted = number in self._unwanted or self._closed
        try:
            if not unwanted:
                yield from items
        finally:
            self._exit(number)

    def _exit(self, number: int) -> None:
        """Close a watch once, even if two threads try. A generator cannot be closed twice."""
        with self._lock:
            watch = self._watches.pop(number, None)
        if watch is not None:
            # It is left either way. The thread that runs the core leaves watches, too.
            _told("a watch of the drainer can't be closed", None, partial(watch.__exit__, None, None, None))


class _Display:
    """Says when the progress of drains is reported, and reports it."""

    def __init__(self, on_progress: Callable[[DrainProgress], None] | None) -> None:
        self._on_progress = on_progress
        self.due: datetime | None = None
        """When the next report is due (UTC), None if nothing has changed."""

    def is_due(self, now: datetime, running: int) -> bool:
        """Return whether to report the drains that go on, so many, by `now`. If not, set the moment."""
        if self._on_progress is None:
            return False
        every = SHOWN_EVERY * max(1, running // SHOWN_SO_OFTEN)
        due = self.due is not None and not now < self.due <= now + every
        self.due = None if due else self.due or now + every
        return due

    def report(self, progress: DrainProgress) -> None:
        """Report one drain."""
        if self._on_progress is not None:
            _told("the progress can't be shown", progress.node, partial(self._on_progress, progress))


class _Orders:
    """The last order for each node, what reads of others show of it, and what gets its evicted pods."""

    def __init__(self, on_evicted: Callable[[DrainOrder, Eviction], None] | None) -> None:
        self._on_evicted = on_evicted
        self.orders: dict[str, DrainOrder] = {}
        self.shared: Callable[[str], NodeRead | None] = lambda node: None

    def answer(self, command: CheckNode, now: datetime) -> NodeSeen | None:
        """Answer with a read of others, if that is new enough and the drain goes on with it."""
        read, order = self.shared(command.node), self.orders.get(command.node)
        if read is None or order is None or command.since is None or read.at < command.since:
            return None
        node = read.node
        goes_on = node.uid == order.uid and node.unschedulable and not stops(node, order, now)
        return NodeSeen(command.node, command.drain, node, at=read.at) if goes_on else None

    def say(self, command: Evict | Delete) -> None:
        """Say that a pod was evicted or deleted."""
        order = self.orders.get(command.node)
        if self._on_evicted is None or order is None:
            return
        eviction = Eviction(command.pod, isinstance(command, Delete), command.refused)
        _told("an eviction can't be reported", command.node, partial(self._on_evicted, order, eviction))


class _Senders:
    """The threads that send writes and reads."""

    def __init__(self, limits: Limits) -> None:
        self.writers = Pool("drain", limits.parallel)
        self.readers = Pool("drain-read", READERS)
        self.lookers = Pool("drain-look", LOOKERS)

    def of(self, command: Request) -> Pool:
        """Return those that send the request."""
        if isinstance(command, Write):
            return self.writers
        return self.lookers if isinstance(command, CheckNode) else self.readers

    def close(self, left: Callable[[], float]) -> None:
        """Begin no other request, and wait for those in flight, for as many seconds as `left` returns."""
        for pool in (self.writers, self.readers, self.lookers):
            pool.close(left())


class _Counts(Struct):
    """How many drains run, and how many have ended since the start."""

    running: int = 0
    ended: int = 0


class Drainer:
    """Carries out drains in the background, until `close`.

    Errors of requests are in the progress, and are not raised in the caller's thread. `limits.parallel`
    threads send writes, others send reads, each watch has its own thread, and one runs the core. An exception
    in the core fails the drains that run, is logged, and does not end the thread: the next order starts a
    drain again.
    """

    def __init__(
        self,
        evictor: Evictor,
        clock: Clock,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[DrainProgress], None] | None = None,
        before_own_pod: Callable[[], None] | None = None,
        on_evicted: Callable[[DrainOrder, Eviction], None] | None = None,
    ) -> None:
        """Start without drains.

        `on_progress` is called from the drainer's thread for each drain that has changed. `before_own_pod` is
        called once before the reconciler's own pod is evicted, to release what others wait for (the lock).
        `on_evicted` is called after each eviction or deletion, from the thread of the request, so it must not
        wait.
        """
        self._core = DrainCore(limits)
        self._evictor = evictor
        self._clock = clock
        self._display = _Display(on_progress)
        self._before_own_pod = before_own_pod
        self._orders = _Orders(on_evicted)
        self._changed = Condition()
        self._events: deque[Event] = deque()
        self._waiting: deque[DrainOrder] = deque()
        self._core_lock = Lock()
        self._failure: BaseException | None = None
        self._counts = _Counts()
        self._closing = False
        self._watches = WatchThreads(evictor, clock, self._put)
        self._senders = _Senders(self._core.limits)
        self._thread: Thread | None = None

    def start(self, order: DrainOrder) -> None:
        """Start or continue the drain of a node. A drain that has ended starts again.

        Raises NoThread if the drainer's thread can't start. Raises the exception that ended this thread, if
        there is one: nothing is drained any more.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self._closing:
                return
            if self._thread is None:
                self._thread = start("drainer", self._run)
            self._events.append(Start(order))
            self._waiting.append(order)
            self._orders.orders[order.node] = order
            # Counted here, so that `wait` right after this call sees a running drain.
            self._counts.running += 1
            self._changed.notify_all()

    def share(self, read: Callable[[str], NodeRead | None]) -> None:
        """Use what a read for other drains has shown of a node, instead of another read where that is enough.

        `read` returns None for a node that is not known, and must not wait. Only a read of its own ends a
        drain: our own cordon may be newer than the other one.
        """
        self._orders.shared = read

    def stop(self, node: str, because: str = "stopped") -> None:
        """Stop evictions on a node. Requests in flight are not cancelled."""
        self._put(Stop(node, because))

    def watched_pods(self, node: str, uid: str) -> tuple[Pod, ...] | None:
        """Return the pods of the node with this UID, as its drain knows them now, None if it does not."""
        with self._core_lock:
            return self._core.watched_pods(node, uid, self._clock.now())

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
                slot = SlotUse(held=order.slots is not None)
                shown[order.node] = DrainProgress(order.node, order.uid, Phase.RUNNING, slot=slot)
        return shown

    def wait(self, timeout: float | None) -> bool:
        """Wait until a drain ends or none runs, for at most `timeout` seconds. Return False after a timeout.

        It returns at once if no drain runs. It raises the exception of the drainer's thread, if there is one.
        """
        until = None if timeout is None else self._clock.now().timestamp() + timeout
        with self._changed:
            ended = self._counts.ended
            while self._counts.running > 0 and self._counts.ended == ended and not self._closing:
                left = None if until is None else until - self._clock.now().timestamp()
                if left is not None and left <= 0:
                    return False
                self._clock.wait(self._changed, None if left is None else min(left, _LONGEST_SLEEP))
            if self._failure is not None:
                raise self._failure
            return True

    def close(self) -> None:
        """Stop everything, and return when no request is in flight and no thread runs.

        What does not end within `CLOSED_WITHIN` is left: it goes on until it has its answer, or until the
        connection is closed. An eviction names the UID of its pod, so a late one evicts no other pod.
        """
        until = self._clock.now() + CLOSED_WITHIN

        def left() -> float:
            # The clock may be set back meanwhile.
            return max(min(until - self._clock.now(), CLOSED_WITHIN).total_seconds(), 0.0)

        with self._changed:
            self._closing = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(left())
        self._watches.leave_all()
        self._senders.close(left)
        self._watches.join(left)

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
                wakes = (self._core.next_wake(), self._display.due)
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
            touched = self._core.touched(running=self._display.is_due(now, running))
        for command in commands:
            self._carry_out(command)
        with self._changed:
            before, waiting = self._counts.ended, sum(isinstance(event, Start) for event in self._events)
            self._counts = _Counts(running + waiting, ended)
            if ended != before or not self._counts.running:
                self._changed.notify_all()
        for progress in touched:
            self._display.report(progress)

    def _carry_out(self, command: Command) -> None:
        match command:
            case WatchPods() | WatchBudgets():
                self._watches.open(command)
            case Unwatch(number):
                self._watches.leave(number)
            case CheckNode() if (seen := self._orders.answer(command, self._clock.now())) is not None:
                self._put(seen)
            case _:
                try:
                    self._senders.of(command).submit(partial(self._ask, command))
                except NoThread as error:
                    # The core retries as after any request that failed.
                    _log.warning(
                        "a request of the drainer can't be sent: %s", error, extra={"node": command.node}
                    )
                    self._put(failed(command, error))

    def _ask(self, command: Request) -> None:
        try:
            with _expected("a request of the drainer failed", command.node):
                if isinstance(command, Evict | Delete) and command.own and self._before_own_pod is not None:
                    self._before_own_pod()
                now = self._clock.now()
                if isinstance(command, Write) and command.until is not None and now > command.until:
                    raise TooLate(f"not sent: node {command.node} was last seen cordoned too long ago")
                # Another read may have shown the node since the command.
                seen = self._orders.answer(command, now) if isinstance(command, CheckNode) else None
                answer: Event = seen if seen is not None else ask(self._evictor, command, now)
        except ReconcilerError as error:
            answer = failed(command, error)
        self._put(answer)
        if isinstance(command, Evict | Delete) and isinstance(answer, WriteDone) and answer.error is None:
            self._orders.say(command)
