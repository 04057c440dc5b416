"""Drains that take a known time: a drainer for fleets whose pods are too many to simulate one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.node import Node
from reconciler.model.pod import Owner, Pod
from reconciler.model.values import replace
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.log import Happening

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
        if known is not None and known.uid == order.uid and known.phase is Phase.RUNNING:
            self._progress[order.node] = replace(known, slot=slot)
            return
        self._progress[order.node] = DrainProgress(order.node, order.uid, Phase.RUNNING, total=1, slot=slot)
        ends = self._cluster.clock.now()
        if order.node not in self._empty:
            ends += self._takes(order.node)
        self._ends[order.node] = ends
        self._cluster.clock.at(ends, lambda: self._end(order.node, ends))

    def stop(self, node: str) -> None:
        """Stop a drain; the pods stay."""
        self._ends.pop(node, None)
        if (known := self._progress.get(node)) is not None:
            self._progress[node] = replace(known, phase=Phase.STOPPED, slot=False)

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
            known, phase=Phase.DRAINED, gone=1, evicted=1, slot=False, finished=ends
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
