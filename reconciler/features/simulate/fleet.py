"""A fleet too large to simulate each pod: a port that reads only what changed, and drains of a known time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from reconciler.model.drains import DrainOrder, DrainProgress, Phase, SlotUse
from reconciler.model.node import Condition, Node, Wanted
from reconciler.model.pod import Owner, Pod
from reconciler.model.snapshot import Resting, Snapshot
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.passes.decide.known import rests
from reconciler.passes.observe import wanted
from reconciler.passes.parts import Parts
from reconciler.passes.plugin import SourceContext, readings_of
from reconciler.profiles.judging import judge
from reconciler.settings.schema import Settings
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import Happening
from reconciler.simulation.cluster import SimulatedCluster

_OWNER = Owner("ReplicaSet", "all", "apps/v1", "replicaset")


class TimedDrains:
    """A drainer (port `Drains`) in which the drain of a node takes the time that the node is known to need.

    The pods of a node are one pod here, which goes at the end of that time, and is back when the node is
    uncordoned. No PodDisruptionBudget refuses anything: what budgets cost is part of the time. A drain that
    is stopped begins from the start.
    """

    def __init__(self, cluster: SimulatedCluster, takes: Callable[[str], timedelta]) -> None:
        """Drain nodes of this cluster; `takes` returns how long the drain of a node takes, by its name."""
        self._cluster = cluster
        self._takes = takes
        self._progress: dict[str, DrainProgress] = {}
        self._ends: dict[str, datetime] = {}
        self._empty: set[str] = set()
        self.listeners: list[Callable[[str], None]] = []
        """Called with the name of each node whose last pod has just left."""
        cluster.node_listeners.append(self._changed)
        cluster.log.listeners.append(self._heard)

    def start(self, order: DrainOrder) -> None:
        """Start a drain, or change the slot of a running one."""
        node, known = self._cluster.nodes.get(order.node), self._progress.get(order.node)
        if node is None or node.uid != order.uid:
            return
        slot = order.slots is not None
        if known is not None and known.goes_on(order.uid):
            self._progress[order.node] = replace(known, slot=SlotUse(held=slot), since=order.since)
            return
        self._progress[order.node] = DrainProgress(
            order.node, order.uid, Phase.RUNNING, total=1, slot=SlotUse(held=slot), since=order.since
        )
        ends = self._cluster.clock.now()
        if order.node not in self._empty:
            ends += self._takes(order.node)
        self._ends[order.node] = ends
        self._cluster.clock.at(ends, lambda: self._end(order.node, ends))

    def stop(self, node: str) -> None:
        """Stop a drain; the pods stay."""
        self._ends.pop(node, None)
        if (known := self._progress.get(node)) is not None:
            self._progress[node] = replace(known, phase=Phase.STOPPED, slot=SlotUse())

    def watched_pods(self, node: str, uid: str) -> None:
        """Return None: these drains watch no pods."""

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return the drains of the nodes that have not been uncordoned since, by node."""
        return dict(self._progress)

    def empty(self, node: str) -> bool:
        """Whether the pods of a node have left it."""
        return node in self._empty

    def pods(self, node: str) -> tuple[Pod, ...]:
        """Return the pods on a node: one, or none if it is empty."""
        if node in self._empty:
            return ()
        return (Pod("default", "all", f"pod-{node}", node, owner=_OWNER, phase="Running", ready=True),)

    def _end(self, node: str, ends: datetime) -> None:
        if self._ends.get(node) != ends:
            return
        del self._ends[node]
        known = self._progress[node]
        self._progress[node] = replace(
            known, phase=Phase.DRAINED, gone=1, evicted=1, slot=SlotUse(), finished=ends
        )
        self._empty.add(node)
        for listener in self.listeners:
            listener(node)

    def _changed(self, node: Node) -> None:
        if not node.unschedulable:
            self._forget(node.name)

    def _heard(self, happening: Happening) -> None:
        if happening.what == "node gone":
            self._forget(happening.node)

    def _forget(self, node: str) -> None:
        self._ends.pop(node, None)
        self._progress.pop(node, None)
        self._empty.discard(node)


_Labels = tuple[tuple[str, str], ...]


class PartialApi(SimulatedApi):
    """SimulatedApi whose list of nodes has only those that a decision is about (port `PartialReader`).

    A pass over the list costs as much as there is news, however many nodes there are. Detectors write a
    heartbeat for each read, so that no reading becomes too old by itself.

    `news` becomes True with each change that a pass may act on; whoever runs the passes sets it back.
    `ignored` are the IDs of the events that the settings ignore: their nodes are left out, too.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        settings: Settings,
        parts: Parts,
        pods: Callable[[str], tuple[Pod, ...]],
        *,
        whole: bool = False,
    ) -> None:
        """Use this cluster, as these settings read it; nodes may be there already.

        `pods` are by node. With `whole`, no node is left out: passes decide the same, and take longer.
        """
        super().__init__(cluster)
        self._whole = whole
        self._pods = pods
        self._settings = settings
        self._parts = parts
        self._sources = parts.sources.switched_on(settings)
        self._wanted = wanted(settings, parts)
        self._busy: set[str] = set()
        self._known: dict[str, _Labels] = {}
        self.news = True
        self.ignored: set[str] = set()
        self._counts: Counter[_Labels] = Counter()
        self._examples: dict[_Labels, Node] = {}
        cluster.node_listeners.append(self._changed)
        cluster.log.listeners.append(self._heard)
        for node in cluster.nodes.values():
            self._changed(node)

    def nodes(self, wanted: Wanted) -> tuple[Node, ...]:
        """Return the nodes that a decision is about, sorted by name."""
        self.begin_read("nodes")
        self.listed = tuple(self._shown(self.cluster.nodes[name], wanted) for name in sorted(self._busy))
        return self.listed

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of a node, or of all."""
        del placement
        self.begin_read("pods", node or "")
        names = [node] if node is not None else sorted(self.cluster.nodes)
        return tuple(pod for name in names for pod in self._pods(name))

    def resting(self) -> tuple[Resting, ...]:
        """Return all other nodes: one of each set of labels, and how many there are."""
        return tuple(
            Resting(self._examples[labels], count) for labels, count in self._counts.items() if count
        )

    def _changed(self, node: Node) -> None:
        before = self._known.get(node.name)
        labels = tuple(sorted(node.labels.items())) if self._rests(node) and not self._whole else None
        if labels is not None and labels == before:
            return
        self.news = True
        self._leave(node.name)
        if labels is None:
            self._busy.add(node.name)
            return
        self._known[node.name] = labels
        self._counts[labels] += 1
        self._examples.setdefault(labels, node)

    def _heard(self, happening: Happening) -> None:
        if happening.what == "node gone":
            self.news = True
            self._leave(happening.node)

    def _leave(self, node: str) -> None:
        self._busy.discard(node)
        labels = self._known.pop(node, None)
        if labels is not None:
            self._counts[labels] -= 1

    def _rests(self, node: Node) -> bool:
        shown = self._shown(node, self._wanted)
        now = self.cluster.clock.now()
        agents, server = self.cluster.agents, self.cluster.server_version
        context = SourceContext(self._settings, now, agents, server=server)
        readings = readings_of(shown, self._sources, context)
        found = assess(Snapshot((shown,), {node.name: readings}), now).of(node.name)
        judged = [judge(event, shown, self._settings, self.cluster.remediator, now) for event in found.events]
        if any(one.asks or one.times is not None or one.until is not None for one in judged):
            return False
        self.ignored.update(id_ for event in found.events for id_ in event.ids)
        quiet = rests(shown, replace(found, events=()), self._settings, self._parts)
        return quiet and not self._settings.profile_names

    def _beating(self, name: str, condition: Condition) -> Condition:
        found = super()._beating(name, condition)
        return found if found is condition else replace(found, heartbeat=self.cluster.clock.now())
