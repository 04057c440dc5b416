"""Everything that writes while the lock is held, shared by `sweep` and `serve`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec import Struct

from jobs.runtime.counting import CountedHistory, Counting
from jobs.runtime.environment import Target, identity
from jobs.runtime.history_file import OpenCases
from jobs.runtime.outside import Wiring
from jobs.runtime.tracing import NOTHING, Tracing
from reconciler.features.events.own_pod import OwnPodEvents
from reconciler.features.notices.escalations import Escalations
from reconciler.features.notices.settings import NOTIFY
from reconciler.features.notices.stored_memory import NoticeMemory
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.lease import Lock
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.pod import Pod
from reconciler.model.ports import CaseHistory, Clock
from reconciler.model.values import replace
from reconciler.run import run_pass
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.drain.drainer import Drainer
    from reconciler.features.events.pod_events import PodEvents
    from reconciler.features.notices.queue import NoticeQueue


LAST_NOTICES = 10.0
"""Seconds that the end of a process waits for messages that are due."""

LAST_EVENTS = 3.0
"""Seconds that the end of a process waits for Events about pods."""


class Listeners(Struct, frozen=True):
    """Who gets what happens while a process acts.

    `on_progress` gets the progress of drains, `history` the cases that end, `counting` what metrics show,
    `tracing` passes and drains.
    """

    on_progress: Callable[[DrainProgress], None] | None = None
    history: CaseHistory | None = None
    counting: Counting = Counting()
    tracing: Tracing = NOTHING


NOBODY = Listeners()


class Acting:
    """The lock, and what may write only while it is held.

    Entering raises LockHeld if another pass has it. Leaving first ends the drains and then releases the
    lock; the record on each node says where the next pass continues.
    """

    def __init__(
        self,
        connection: Connection,
        target: Target,
        settings: Settings,
        clock: Clock,
        listeners: Listeners = NOBODY,
        earlier: str = "",
    ) -> None:
        """Use this connection and these settings; `settings` may be replaced between passes.

        `earlier` is the identity of an Acting of this process that has lost the lock and was left.
        """
        self.settings = settings
        self._listeners = listeners
        self._history = CountedHistory(listeners.history, listeners.counting)
        self._open_cases = OpenCases()
        self._leads_since: datetime | None = None
        self._clock = clock
        self.identity = identity()
        self._lock = Lock(connection, namespace=target.namespace, identity=self.identity, earlier=earlier)
        self._wiring = Wiring(connection, target, self._lock.check)
        self._leaving = False
        self._escalations = Escalations()
        self._notices: NoticeQueue | None = None
        self._pod_events: PodEvents | None = None
        self.drainer = DrainerWhenNeeded(self._make_drainer, self._listeners.tracing.ordered)

    def __enter__(self) -> Acting:
        """Acquire the lock; LockHeld if another pass has it."""
        self._lock.acquire()
        self._leads_since = self._clock.now()
        self._listeners.counting.leads(leads=True)
        self._start_notices()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the drains, send the notices that are due, then release the lock."""
        try:
            self.drainer.close()
        finally:
            self._listeners.tracing.stopped()
            try:
                if self._pod_events is not None:
                    self._pod_events.close(LAST_EVENTS)
                if self._notices is not None:
                    self._notices.close(LAST_NOTICES)
            finally:
                self._listeners.counting.waiting(None)
                self._listeners.counting.leads(leads=False)
                self._lock.release()

    def run_pass(self) -> tuple[Plan, tuple[Outcome, ...]]:
        """Run one pass now; raises LockLost if the lock is no longer ours."""
        with self._listeners.tracing.passing() as seen:
            plan, outcomes = self._run_pass()
            seen(plan, outcomes)
        return plan, outcomes

    def _run_pass(self) -> tuple[Plan, tuple[Outcome, ...]]:
        # A pass that has nothing to write would not notice that the lock is lost.
        self._lock.check()
        outside = replace(
            self._wiring.to_act(self.settings, self.drainer),
            history=self._history,
            itself=replace(self._wiring.itself, leads_since=self._leads_since),
        )
        self._start_notices()
        outside = replace(outside, outbox=self._notices)
        done = run_pass(outside, self.settings, self._clock.now())
        deleted = self._open_cases.after(done[0])
        if deleted:
            self._history.keep(deleted)
        self._escalations.report(self.drainer.progress().values(), outside.notifier)
        plan, outcomes = self._with_notices(*done)
        self._listeners.counting.after(plan, self.drainer.progress())
        return plan, outcomes

    def _start_notices(self) -> None:
        """Begin to read what was sent before, so that it is there when the pass ends."""
        instances = self.settings.profiles.instances.notify
        if self._notices is None and (NOTIFY.of(self.settings) or instances):
            # Most clusters tell nobody, and need none of this.
            from reconciler.features.notices.owners import Concerned
            from reconciler.features.notices.queue import NoticeQueue
            from reconciler.features.notices.receivers import Around
            from reconciler.features.notices.silences import Silencer
            from reconciler.features.notices.transports.sending import Http
            from reconciler.features.notices.transports.table import Tools, transport_of

            own_pod = OwnPodEvents(self._wiring.connection, self._wiring.itself)
            tools = Tools(Http(), self._wiring.cluster, self._clock.now)
            self._notices = NoticeQueue(
                Around(
                    store=NoticeMemory(
                        self._wiring.connection, self._wiring.target.namespace, self._lock.check
                    ),
                    clock=self._clock,
                    guard=self._lock.check,
                    make=partial(transport_of, tools=tools),
                    silences=partial(Silencer, http=tools.http),
                    warn=lambda notice: own_pod.notify(notice, self.settings.time_zone),
                    concerned=Concerned(self._wiring.connection, self._wiring.cluster),
                    counted=self._listeners.counting,
                )
            )
        if self._notices is not None:
            self._notices.start(NOTIFY.of(self.settings), self.settings.time_zone, instances)

    def _with_notices(self, plan: Plan, outcomes: tuple[Outcome, ...]) -> tuple[Plan, tuple[Outcome, ...]]:
        """Put the messages about a pass into the queue, and say in its notes what can't be sent."""
        if self._notices is None:
            return plan, outcomes
        notes = self._notices.after(plan, outcomes, plan.now)
        return replace(plan, notes=(*plan.notes, *notes)), outcomes

    def _make_drainer(self) -> Drainer:
        from jobs.runtime.counting import CountedEvictions
        from reconciler.drain.drainer import Drainer, Limits
        from reconciler.features.events.pod_events import PodEvents

        self._pod_events = PodEvents(
            self._wiring.connection, self._guard_eviction, lambda: self.settings.time_zone
        )
        keys, drain = self.settings.keys, self.settings.drain
        evictions = CountedEvictions(self._wiring.connection, guard=self._guard_eviction, prefix=keys.prefix)
        evictions.counting = self._listeners.counting
        return Drainer(
            self._listeners.tracing.evictor(evictions),
            self._clock,
            limits=Limits(parallel=drain.parallel, per_node=drain.parallel_per_node),
            on_progress=self._progressed if self._listeners.tracing.active else self._listeners.on_progress,
            before_own_pod=self._let_go,
            on_evicted=self._on_evicted,
        )

    def _progressed(self, progress: DrainProgress) -> None:
        self._listeners.tracing.progressed(progress)
        if self._listeners.on_progress is not None:
            self._listeners.on_progress(progress)

    def _on_evicted(self, order: DrainOrder, pod: Pod, deleted: bool) -> None:
        if self._pod_events is not None and self.settings.drain.pod_events:
            self._pod_events.evicted(order, pod, deleted)

    def drains_run(self) -> bool:
        """Whether any drain is still in progress."""
        return not self.drainer.wait(0)

    def _guard_eviction(self) -> None:
        # The eviction of our own pod is the only write after the lock is released.
        if not self._leaving:
            self._lock.check()

    def _let_go(self) -> None:
        self._leaving = True
        self._lock.release()


class DrainerWhenNeeded:
    """The drainer that `make` returns, created when the first drain starts."""

    def __init__(
        self, make: Callable[[], Drainer], on_order: Callable[[DrainOrder], None] | None = None
    ) -> None:
        """Use this function to create the drainer; `on_order` gets each order."""
        self._make, self._on_order = make, on_order
        self._made: Drainer | None = None

    def start(self, order: DrainOrder) -> None:
        """Start a node's drain, or continue it."""
        if self._made is None:
            self._made = self._make()
        if self._on_order is not None:
            self._on_order(order)
        self._made.start(order)

    def stop(self, node: str) -> None:
        """Stop evictions from a node."""
        if self._made is not None:
            self._made.stop(node)

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return the progress of each drain that was ever started here."""
        return self._made.progress() if self._made is not None else {}

    def wait(self, timeout: float | None) -> bool:
        """Wait up to `timeout` seconds until a drain ends or none runs; return whether that happened."""
        return self._made is None or self._made.wait(timeout)

    def close(self) -> None:
        """Stop all drains, and return when no request is in flight."""
        if self._made is not None:
            self._made.close()


class Yields:
    """What was seen of the drains so far. A drain that is blocked tries again and again; it counts once."""

    def __init__(self) -> None:
        """Start with no drain seen."""
        self._yielded: set[str] = set()

    def see(self, progress: DrainProgress) -> bool:
        """Return whether the drain gives a slot away for the first time since it last made progress."""
        node = progress.node
        if progress.phase is not Phase.RUNNING or progress.blocked_since is None:
            self._yielded.discard(node)
            return False
        if progress.slot or progress.waits_for_slot or node in self._yielded:
            return False
        self._yielded.add(node)
        return True
