"""Creates the Outside of a pass for `sweep`, `serve` and `report`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from jobs.runtime.clock import ServerClock
from jobs.runtime.environment import Target, itself
from jobs.runtime.machines import MachineProviders
from jobs.runtime.process import PassPorts, Ports, first, ports_made_by, processes
from reconciler.drain.ahead import PodsAhead
from reconciler.http.retrying import Guard
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.cluster_name import name_cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.of_namespace import with_own_pods
from reconciler.kubernetes.reconcilers import read_reconciler, read_rivals
from reconciler.kubernetes.scale.beside import ThreadsBeside
from reconciler.kubernetes.scale.cluster import CachedCluster
from reconciler.kubernetes.scale.node_store import NodeStore
from reconciler.model.explanation import Examination
from reconciler.model.plan import Plan
from reconciler.model.polling import Listing
from reconciler.model.ports import Drains, Machines, Notification, Outside, SourceClient, WritableOutside
from reconciler.model.reconciler import Reconciler
from reconciler.model.values import replace
from reconciler.passes.polled import PolledSection, PolledSource
from reconciler.report.effect import Comparison, effect_of
from reconciler.run import PARTS, examine
from reconciler.settings.schema import Mode, Settings


class _Nobody:
    """A notifier without a feature that writes Events: nobody is notified."""

    def notify(self, notification: Notification) -> bool:
        """Send nothing; that is settled."""
        return True


class Wiring:
    """Creates each client when the settings first need it, and keeps it across passes with its tokens."""

    def __init__(
        self,
        connection: Connection,
        target: Target,
        guard: Guard | None = None,
        nodes: NodeStore | None = None,
        came: Callable[[], object] = lambda: None,
    ) -> None:
        """Use this connection and this guard, which raises LockLost if the lock is not ours.

        Without a guard nothing can be written. `nodes` are those that a watch follows. `came` is called when
        an answer has come that a pass went on without.
        """
        self.beside = ThreadsBeside(came)
        self.cluster = CachedCluster(
            connection, guard=guard, namespace=target.namespace, store=nodes, beside=self.beside
        )
        self.nodes = nodes
        self.itself = itself()
        self.connection, self.target = connection, target
        self._sources = SourceClients(PARTS.sources.polled, guard)
        ports = Ports(connection, target, guard)
        self._ports = [process.ports(ports) for process in processes() if process.ports]
        self._machines = [process.machines(ports) for process in processes() if process.machines]
        calendars = first("calendars")
        self._calendars = calendars(connection) if calendars is not None else None
        self._ahead = PodsAhead(self.cluster, seconds=time.monotonic)
        self._made: tuple[Settings, PassPorts, Machines | None] | None = None

    def to_read(self, settings: Settings) -> Outside:
        """Return the Outside of a rehearsal."""
        ports, machines = self._of(settings)
        return Outside(
            reader=self.cluster,
            clients={**self._sources.of(settings), **ports.clients},
            machines=machines,
            calendars=self._calendars,
            ahead=self._ahead,
            itself=self.itself,
            beside=self.beside,
        )

    def to_act(self, settings: Settings, drainer: Drains) -> WritableOutside:
        """Return the Outside of a pass that writes; what only the process knows is left to the caller."""
        ports, machines = self._of(settings)
        return WritableOutside(
            reader=self.cluster,
            writer=self.cluster,
            drainer=drainer,
            clients={**self._sources.of(settings), **ports.clients},
            machines=machines,
            calendars=self._calendars,
            ahead=self._ahead,
            itself=self.itself,
            beside=self.beside,
            notifier=ports.notifier or _Nobody(),
        )

    def _of(self, settings: Settings) -> tuple[PassPorts, Machines | None]:
        """Return the kept ports, with their tokens, until other settings are loaded."""
        if self._made is None or self._made[0] is not settings:
            ports = ports_made_by(self._ports, settings)
            makers = {provider: make for of in self._machines for provider, make in of(settings).items()}
            self._made = settings, ports, MachineProviders(makers) if makers else None
        return self._made[1:]


def cluster_of(connection: Connection, target: Target) -> Cluster:
    """Return what reads all nodes and pods of a cluster of any size, outside of passes; it writes nothing."""
    return CachedCluster(connection, namespace=target.namespace)


def examined(
    connection: Connection,
    target: Target,
    settings: Settings,
    *,
    with_preview: bool = False,
    also_pods: bool = False,
    namespace: str | None = None,
) -> Examination:
    """Return what a pass would do now, and what it has read; see `examine`. It writes nothing.

    With a namespace, also all pods; those of the namespace alone, if the others may not be read.
    """
    outside, clock = Wiring(connection, target).to_read(settings), ServerClock(connection)
    # Without a record of both, only the locks show that there are two.
    rivals = read_rivals(connection, target.namespace, clock.now)
    own = replace(reconciler_of(connection, target, settings), rivals=rivals)
    outside = replace(outside, reconciler=own)
    now = clock.now()
    also_pods = also_pods or namespace is not None
    examination = examine(outside, settings, now, with_preview=with_preview or also_pods, also_pods=also_pods)
    return examination if namespace is None else with_own_pods(examination, connection, namespace)


def compared(connection: Connection, target: Target, before: Settings | None, after: Settings) -> Comparison:
    """Return what a pass would do now with each of these settings, `before` None if there are none.

    It writes nothing, and reads once for each. Raises ClusterError.
    """
    wiring, clock = Wiring(connection, target), ServerClock(connection)

    def planned(settings: Settings) -> Plan:
        # Whether a reconciler runs changes both in the same way, so it is not asked.
        return examine(wiring.to_read(settings), settings, clock.now(), with_preview=True).plan

    earlier = effect_of(planned(before)) if before is not None else None
    later = planned(after)
    return Comparison(earlier, effect_of(later), later.unseen)


def reconciler_of(connection: Connection, target: Target, settings: Settings | None) -> Reconciler:
    """Return who acts on the nodes, as the lock says; None: the settings of the cluster are not known.

    Raises Unreachable and Unauthorized.
    """
    if settings is not None:
        name_cluster(connection, settings.cluster)
    observes = settings is not None and settings.version is not None and settings.mode is Mode.OBSERVE
    return read_reconciler(connection, target.namespace, ServerClock(connection).now, observes=observes)


Factory = Callable[[Settings, Guard | None], SourceClient]

KEPT_PROBLEM = 60.0
"""The time for which a problem is kept at least, in seconds; its service may ask for more."""


class SourceClients:
    """Creates each client of a polled source once, and again when its section changes. Tokens are kept.

    A source names its client's module (`PolledSource.client`), which has one function for this place:
    `for_source(settings: Settings, guard: Guard | None) -> SourceClient`.
    """

    def __init__(self, sources: Iterable[PolledSource[Any, Any]], guard: Guard | None = None) -> None:
        """Give the clients of these sources this guard, which raises LockLost if the lock is not ours.

        Without a guard they only read. A process without a guard can't write the ledger, so its clients keep
        their answers in memory.
        """
        self._sources = tuple(sources)
        self._guard = guard
        self._made: dict[str, tuple[PolledSection, SourceClient]] = {}

    def of(self, settings: Settings) -> Mapping[str, SourceClient]:
        """Return the clients of the enabled polled sources, by the source's name."""
        for source in self._sources:
            section = source.section(settings)
            if not section.enabled:
                self._made.pop(source.name, None)
            elif source.name not in self._made or self._made[source.name][0] != section:
                client = factory(source)(settings, self._guard)
                if self._guard is None:
                    client = Keeping(client, section.every.total_seconds())
                self._made[source.name] = (section, client)
        return {name: client for name, (_, client) in self._made.items()}


def factory(source: PolledSource[Any, Any]) -> Factory:
    """Return the factory of the client of this source."""
    found: Factory = import_module(source.client).for_source
    return found


class Keeping:
    """A client that repeats its answers for `seconds`, for a process that can't write the ledger.

    A problem is kept for as long as its service asks, but no longer than `seconds` or KEPT_PROBLEM. `behind`
    is the client itself, for what a feature reads besides.
    """

    def __init__(
        self, client: SourceClient, seconds: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Use this client for queries; `clock` is in seconds."""
        self.behind = client
        self._seconds = seconds
        self._clock = clock
        self._kept: dict[Any, tuple[float, Listing[Any, Any]]] = {}

    def ask(self, scopes: Sequence[Any], /) -> tuple[Listing[Any, Any], ...]:
        """Query the scopes without a kept answer."""
        now = self._clock()
        # Names of scopes come from nodes, so what is over is not kept.
        self._kept = {scope: one for scope, one in self._kept.items() if one[0] > now}
        kept = {scope: self._kept[scope][1] for scope in scopes if scope in self._kept}
        asked = [scope for scope in scopes if scope not in kept]
        fresh = {one.scope: one for one in (self.behind.ask(asked) if asked else ())}
        now = self._clock()
        for scope, listing in fresh.items():
            if listing.asked:
                wait = max(min(listing.wait or 0.0, self._seconds), KEPT_PROBLEM)
                self._kept[scope] = (now + (wait if listing.problem else self._seconds), listing)
        return tuple(replace(kept[scope], wait=None) if scope in kept else fresh[scope] for scope in scopes)
