"""Everything that writes while the lock is held, shared by `sweep` and `serve`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from jobs.runtime.behind import Behind, OnceBeside
from jobs.runtime.environment import identity, this_process
from jobs.runtime.outside import Wiring
from jobs.runtime.process import Leading, Observers, Passed, companions_of, evicted, inform
from jobs.runtime.watchdog import Watchdog
from reconciler import __version__
from reconciler.drain.drainer.requests import refusal_reason
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.cluster_name import name_cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.lease import Lock, Sighting
from reconciler.kubernetes.reconcilers import read_rivals
from reconciler.kubernetes.scale.beside import PATIENCE
from reconciler.kubernetes.scale.evictions import SharedEvictions
from reconciler.kubernetes.scale.side_by_side import SideBySide
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.ended_case import EndedCase, ended_cases
from reconciler.model.errors import Late, ReconcilerError
from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.pod import Pod
from reconciler.model.ports import Clock, NodeRead, Requesting, RequestProgress
from reconciler.model.reconciler import Passes, Reconciler, Running
from reconciler.model.sayings import Deed
from reconciler.model.values import replace
from reconciler.passes.store import Store
from reconciler.run import run_pass
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.drain.drainer import Drainer


RIVALS_EVERY, RIVALS_SOON = 60.0, 2.0
"""Seconds after which a pass reads the locks of other reconcilers again: as a rule, and while one of these
has not ended a pass.
"""

GIVEN_BACK = 4.0
"""Seconds after which a process that ends, or stands by, has given the lock back, whatever hangs."""

RESTORED_FOR = 3600.0
"""Seconds for which each report says `RESTORED`."""

RESTORED = (
    "somebody restored a backup of the cluster within the last hour: the API server's versions went back."
    " All nodes were read again. What was written since the backup is lost, also cordons, records and what"
    " people have said of nodes, such as holds. Say it again, and restart the other controllers"
)


class Following(Struct, frozen=True):
    """What a process has whose passes follow each other without end.

    `store` is what they remember. `watchdog` says whether they end. `sighting` is what was seen of other
    holders of the lock. `calm` waits for some seconds while the cordons of a burst are due, `rest` for
    moments while any pass runs. `came` begins a pass for an answer that one went on without.
    """

    store: Store
    watchdog: Watchdog
    sighting: Sighting
    calm: Callable[[], object]
    rest: Callable[[], object]
    came: Callable[[], object] = lambda: None


class Acting:
    """The lock, and what may write only while it is held.

    Entering raises LockHeld if another pass has it, and is all or nothing: after any other error the lock is
    given back. Leaving first ends the drains and then releases the lock, in time whatever hangs; the record
    on each node says where the next pass continues.
    """

    def __init__(
        self,
        looking: Wiring,
        settings: Settings,
        clock: Clock,
        observers: Observers,
        following: Following | None = None,
        every: timedelta | None = None,
        mistake: Callable[[], str] = str,
    ) -> None:
        """Write where `looking` only reads, by these settings, which may be replaced between passes.

        With `following`, a pass decides about what changed since the last one. `every` is the longest time
        between two passes, None for a sweep; it may be replaced as well. `mistake` returns why the newest
        settings can't be used.
        """
        connection, target = looking.connection, looking.target
        self.settings, self._following = settings, following
        self._observers = observers
        self._open_cases = OpenCases()
        self._clock = clock
        self.identity = identity()
        # A sweep waits between its passes, and in each wait for a short time only.
        self._watchdog = following.watchdog if following is not None else Watchdog()
        self._lock = Lock(
            connection,
            namespace=target.namespace,
            identity=self.identity,
            process=this_process(),
            sighting=following.sighting if following is not None else None,
            stands_still=self._watchdog.stands_still,
        )
        self.every = every
        self._lock.says(self._begins)
        came = following.came if following is not None else lambda: None
        self._wiring = Wiring(connection, target, self._lock.check, looking.nodes, came)
        self._itself = self._wiring.itself
        beside = self._wiring.beside
        self._side_by_side = SideBySide(lambda: connection.throttled, self._watchdog.wrote, beside)
        self._behind = Behind(following.rest) if following is not None else None
        self._clients: Mapping[str, Any] = {}
        self._rivals: tuple[Reconciler, ...] = ()
        self._rivals_due = 0.0
        self.gave_back = False
        """Whether the lock was given back because our own Pod is evicted."""
        self.drainer = DrainerWhenNeeded(self._make_drainer, observers.ordered)
        leading = Leading(
            connection,
            # What runs beside the passes waits as long as it needs.
            Cluster(connection, guard=self._lock.check, namespace=target.namespace),
            target,
            self._itself,
            clock,
            self._lock.check,
            self._guard_eviction,
            observers,
            self.drainer.progress,
            lambda: self.settings,
            mistake=mistake,
            goes_on=following is not None,
            did=self._did,
        )
        self._companions = companions_of(leading)

    def _begins(self, before: Passes) -> Passes:
        """Return what the lock says once it is ours, after what its last holder has said."""
        mode = self.settings.mode.value
        if self.every is not None:
            return before.of_serve(self.every, mode, __version__)
        return before.of_sweep(self._clock.now(), mode, __version__)

    def __enter__(self) -> Acting:
        """Acquire the lock; LockHeld if another pass has it."""
        self._lock.acquire()
        try:
            self._itself = replace(self._wiring.itself, leads_since=self._clock.now())
            self._observers.leads(leads=True)
            for companion in self._companions:
                companion.before(self.settings)
        except BaseException:
            # First, so that another process can act while this one cleans up.
            self._lock.release()
            self.__exit__(None, None, None)
            raise
        return self

    def gives_back(self) -> None:
        """Give the lock back in `GIVEN_BACK` seconds at the latest; leave this as soon as possible."""
        self._lock.release_within(GIVEN_BACK)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the drains, send the notices that are due, then release the lock."""
        self.gives_back()
        self._lock.turns_to(self.settings.mode.value)
        with ExitStack() as last:
            last.callback(self._lock.release)
            last.callback(self._observers.leads, leads=False)
            if self._behind is not None:
                last.callback(self._behind.close)
            for companion in reversed(self._companions):
                last.callback(companion.close)
            last.callback(self._observers.stopped)
            last.callback(self.drainer.close)

    @property
    def late(self) -> bool:
        """Whether the last pass went on without an answer."""
        return self._wiring.beside.late

    def run_pass(self, *, waits: bool = False) -> tuple[Plan, tuple[Outcome, ...]]:
        """Run one pass now; raises LockLost if the lock is no longer ours.

        With `waits`, it waits for each answer as long as it takes.
        """
        self._wiring.beside.begins(None if waits else PATIENCE)
        # The deadlines of the answers end a pass that waits for them.
        ends = nullcontext() if waits else self._ends()
        with self._observers.passing() as seen, ends:
            plan, outcomes = self._run_pass()
            seen(plan, outcomes)
        drains = self.drainer.progress()
        self._observers.after(Passed(plan, self.settings, outcomes, rehearsed=False, drains=drains))
        return plan, outcomes

    @contextmanager
    def _ends(self) -> Iterator[None]:
        """Let the watchdog see the passes of a sweep; the loop of `serve` shows its own."""
        if self._following is not None:
            yield
            return
        self._watchdog.begins()
        try:
            yield
        finally:
            self._watchdog.ends()

    def _run_pass(self) -> tuple[Plan, tuple[Outcome, ...]]:
        # A pass that has nothing to write would not notice that the lock is lost.
        self._lock.check()
        if time.monotonic() >= self._rivals_due:
            target, connection = self._wiring.target, self._wiring.connection
            rivals = partial(read_rivals, connection, target.namespace, self._clock.now)
            with suppress(Late):
                self._rivals = self._wiring.beside.read(("the locks of other reconcilers",), rivals)
                # One that has begun together with us has not said yet which nodes it selects.
                known = all(rival.seen is not None for rival in self._rivals)
                self._rivals_due = time.monotonic() + (RIVALS_EVERY if known else RIVALS_SOON)
        outboxes = [companion.before(self.settings) for companion in self._companions]
        outside = self._wiring.to_act(self.settings, self.drainer)
        self._clients = outside.clients
        notifier = outside.notifier if self._behind is None else self._behind.over(outside.notifier)
        outside = replace(
            outside,
            notifier=OnceBeside(notifier, outside.beside),
            outbox=next((outbox for outbox in outboxes if outbox is not None), None),
            ended=self,
            itself=self._itself,
            reconciler=replace(
                acting_now(self._wiring.connection, self.settings, self._clock.now()),
                holder=self.identity,
                interval=self.every,
                lock=self._wiring.target.namespace,
                since=self._lock.since,
                seen=self._lock.seen,
                rivals=self._rivals,
            ),
            side_by_side=self._side_by_side,
        )
        store = self._following.store if self._following is not None else None
        plan, outcomes = run_pass(outside, self.settings, self._clock.now(), store)
        if deleted := self._open_cases.after(plan):
            self.keep(deleted)
        notes: list[str] = []
        inform(
            self._companions,
            lambda companion: notes.extend(companion.after(plan, outcomes, outside.notifier)),
        )
        nodes = self._wiring.nodes
        restored = nodes.went_back() if nodes is not None else None
        if restored is not None and restored < RESTORED_FOR:
            notes.append(RESTORED)
        self._lock.passed(self._clock.now(), self.settings.mode.value, plan.reconciler.seen, self.every)
        return (replace(plan, notes=(*plan.notes, *notes)) if notes else plan), outcomes

    def _make_drainer(self) -> Drainer:
        from reconciler.drain.drainer import Drainer, Limits

        for companion in self._companions:
            companion.drains()
        keys, drain = self.settings.keys, self.settings.drain
        # In a burst, no cordon waits for the drains of other nodes.
        first = self._following.calm if self._following is not None else lambda: None
        evictions = CountedEvictions(
            self._wiring.connection, guard=self._guard_eviction, prefix=keys.prefix, first=first
        )
        evictions.refused = self._observers.refused
        drainer = Drainer(
            self._observers.evictor(evictions),
            self._clock,
            limits=Limits(parallel=drain.parallel, per_node=drain.parallel_per_node),
            on_progress=self._observers.progressed,
            before_own_pod=self._let_go,
            on_evicted=partial(evicted, self._companions),
        )
        # Not the watch of nodes: what it shows may be old, however often it is heard.
        drainer.share(partial(self._read, evictions))
        return drainer

    def _read(self, evictions: SharedEvictions, node: str) -> NodeRead | None:
        """Return the node as the last list for drains has it, None if that has no such node."""
        listed = evictions.listed(node)
        return NodeRead(listed[0], self._clock.now() - timedelta(seconds=listed[1])) if listed else None

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """Hand the cases that have ended on to observers and companions, with the name of the cluster."""
        cluster = self._wiring.connection.known_cluster
        named = [replace(case, place=replace(case.place, cluster=cluster)) for case in cases]
        self._observers.keep(named)
        inform(self._companions, lambda companion: companion.ended(named))

    def _did(self, deed: Deed) -> None:
        inform(self._companions, lambda companion: companion.did(deed))

    def drains_run(self) -> bool:
        """Whether any drain is still in progress."""
        return not self.drainer.wait(0)

    def requests(self) -> RequestProgress:
        """Return what features have asked so far whose answers a pass has to read."""
        asked = [client.progress() for client in self._clients.values() if isinstance(client, Requesting)]
        return RequestProgress(sum(each.waiting for each in asked), sum(each.answered for each in asked))

    def _guard_eviction(self) -> None:
        # The eviction of our own pod is the only write after the lock is released.
        if not self.gave_back:
            self._lock.check()

    def _let_go(self) -> None:
        self.gave_back = True
        self._lock.release()


def acting_now(connection: Connection, settings: Settings, now: datetime) -> Reconciler:
    """Return who acts on the nodes in a pass that this process makes `now` (aware)."""
    name_cluster(connection, settings.cluster)
    return Reconciler(
        Running.RUNNING,
        last_pass=now,
        mode=settings.mode.value,
        cluster=connection.cluster,
        context=connection.origin.context,
        because="",
    )


class CountedEvictions(SharedEvictions):
    """Evictions, of which `refused` gets the reason of each refusal."""

    refused: Callable[[str], None]

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict the pod as SharedEvictions does, and raise what it raises."""
        try:
            super().evict(pod, grace=grace)
        except ReconcilerError as error:
            if reason := refusal_reason(error, pod):
                self.refused(reason)
            raise


class OpenCases:
    """What the passes of one process have seen: the record of a case is gone with its node."""

    def __init__(self) -> None:
        """Start without cases."""
        self._open: dict[str, NodePlan] = {}

    def after(self, plan: Plan) -> tuple[EndedCase, ...]:
        """Return the cases that have ended since the last pass, because their nodes were deleted."""
        gone = [last for uid, last in self._open.items() if uid not in plan.uids]
        # A case that a person has released is forgotten.
        self._open = {
            node.uid: node for node in plan.nodes if node.uid and node.record is not None and node.record.open
        }
        return tuple(ended_cases(gone, plan.now, deleted=True))


class DrainerWhenNeeded:
    """The drainer that `make` returns, created when the first drain starts."""

    def __init__(
        self, make: Callable[[], Drainer], on_order: Callable[[DrainOrder], None] | None = None
    ) -> None:
        """Use this function to create the drainer; `on_order` gets each order."""
        self._make, self._on_order = make, on_order
        self._made: Drainer | None = None

    def start(self, order: DrainOrder) -> None:
        """Start a node's drain, or continue it.

        After an error that ended the drainer's thread, the next order makes another drainer.
        """
        if self._made is None:
            self._made = self._make()
        if self._on_order is not None:
            self._on_order(order)
        try:
            self._made.start(order)
        except BaseException:
            self._made = None
            raise

    def stop(self, node: str) -> None:
        """Stop evictions from a node."""
        if self._made is not None:
            self._made.stop(node)

    def watched_pods(self, node: str, uid: str) -> tuple[Pod, ...] | None:
        """Return the pods of the node as its drain knows them, None without one."""
        return self._made.watched_pods(node, uid) if self._made is not None else None

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
        if progress.phase is not Phase.RUNNING or progress.slot.blocked_since is None:
            self._yielded.discard(node)
            return False
        if progress.slot.held or progress.slot.awaited or node in self._yielded:
            return False
        self._yielded.add(node)
        return True
