"""What the API server of a simulated cluster stores, and the watches that report changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from reconciler.model.errors import ReconcilerError, Unreachable
from reconciler.model.node import Node
from reconciler.model.plan import Notice
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetChange, BudgetGone, Listed, PodChange, PodGone
from reconciler.model.values import replace
from reconciler.simulation.clock import Actor, Delivery, Happening, Log, SimulatedWatch, VirtualClock, at_once


class KubernetesEvent(Struct, frozen=True):
    """An Event that was written on a node."""

    at: datetime
    node: str
    uid: str
    notice: Notice


class _Watches(Struct):
    """The open watches: of the pods of each node, and of budgets."""

    of_pods: dict[str, list[SimulatedWatch[PodChange]]] = field(default_factory=dict)
    of_budgets: list[SimulatedWatch[BudgetChange]] = field(default_factory=list)


class Backup(Struct, frozen=True):
    """What was stored at a moment: `parts` are the attributes of the store, by name."""

    revision: str
    parts: Mapping[str, Any]


BACKED_UP = ("nodes", "pods", "budgets", "namespaces", "others", "our_cordons")
"""The attributes that a backup has."""


class ObjectStore:
    """The objects, by name or UID. Each change gets a new resourceVersion, and is sent to the watches."""

    def __init__(self, clock: VirtualClock, log: Log | None = None) -> None:
        self.clock = clock
        self.log = log or Log()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.budgets: dict[str, PodDisruptionBudget] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.events: list[KubernetesEvent] = []
        self.others: dict[str, Mapping[Any, Any]] = {}
        """The objects that features alone use, by kind. A change replaces all objects of the kind."""
        self.our_cordons: set[str] = set()
        """The UIDs of nodes that the program cordoned, as `metadata.managedFields` shows."""
        self.node_listeners: list[Callable[[Node], None]] = []
        """Called after each write of a node, with the node as it is then."""
        self.delivery: Delivery = at_once
        """How changes arrive at watches that are opened from now on."""
        self._watches = _Watches()
        self._revision = 0

    @property
    def revision(self) -> str:
        """The newest resourceVersion."""
        return str(self._revision)

    def back_up(self, *more: str) -> Backup:
        """Return what is stored now, with these attributes more."""
        return Backup(self.revision, {name: copy(getattr(self, name)) for name in (*BACKED_UP, *more)})

    def restore(self, backup: Backup, *, ends_watches: bool = True) -> None:
        """Store again what a backup has. The resourceVersions go back with it.

        All watches end, or say nothing of it without `ends_watches`.
        """
        for name, value in backup.parts.items():
            setattr(self, name, copy(value))
        self._revision = int(backup.revision)
        if ends_watches:
            self.break_watches(Unreachable("the API server begins again"))

    def note(self, actor: Actor, what: str, node: str = "", subject: str = "", detail: str = "") -> None:
        """Log what happens."""
        self.log.write(Happening(self.clock.now(), actor, what, node, subject, detail))

    def put_node(self, node: Node) -> None:
        """Store a node as it is now, with a new resourceVersion."""
        before = self.nodes.get(node.name)
        if before is None or before.unschedulable != node.unschedulable:
            self.our_cordons.discard(node.uid)
        self.nodes[node.name] = replace(node, resource_version=self.next_revision())
        for listener in list(self.node_listeners):
            listener(self.nodes[node.name])

    def touch(self, name: str) -> None:
        """Write the node without a change that we read, as kubelets often do."""
        self.put_node(self.nodes[name])

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Return a node's pods by name."""
        return self.pods_where(lambda pod: pod.node == node)

    def pods_where(self, wanted: Callable[[Pod], bool]) -> tuple[Pod, ...]:
        """Return the pods that are wanted, by name."""
        return tuple(sorted(filter(wanted, self.pods.values()), key=lambda pod: (pod.key, pod.uid)))

    def find_pod(self, key: str) -> Pod | None:
        """Return the pod that has this `namespace/name` now."""
        return next((pod for pod in self.pods.values() if pod.key == key), None)

    def watch_pods(self, node: str) -> SimulatedWatch[PodChange]:
        """List, then watch the pods of a node."""
        watches = self._watches.of_pods.setdefault(node, [])
        watch = SimulatedWatch[PodChange](
            (*self.pods_on(node), Listed()), lambda one: _drop(watches, one), self.clock, self.delivery
        )
        watches.append(watch)
        return watch

    def watch_budgets(self, namespace: str = "") -> SimulatedWatch[BudgetChange]:
        """List, then watch the budgets of a namespace, or all."""
        watches, delivery = self._watches.of_budgets, self.delivery
        place = f"{namespace}/" if namespace else ""

        def is_here(change: object) -> bool:
            return not isinstance(change, PodDisruptionBudget | BudgetGone) or change.key.startswith(place)

        watch = SimulatedWatch[BudgetChange](
            (*(budget for budget in self.budgets.values() if is_here(budget)), Listed()),
            lambda one: _drop(watches, one),
            self.clock,
            lambda change: delivery(change) if is_here(change) else (),
        )
        watches.append(watch)
        return watch

    def break_watches(self, error: ReconcilerError) -> None:
        """End every open watch with an error."""
        for pod_watches in list(self._watches.of_pods.values()):
            for pod_watch in list(pod_watches):
                pod_watch.fail(error)
        for budget_watch in list(self._watches.of_budgets):
            budget_watch.fail(error)

    def _remove(self, pod: Pod, actor: Actor = Actor.CLUSTER) -> None:
        del self.pods[pod.uid]
        self.note(actor, "pod gone", pod.node, pod.key)
        self._push(pod.node, PodGone(pod.uid))

    def _put(self, pod: Pod) -> None:
        pod = replace(pod, resource_version=self.next_revision())
        self.pods[pod.uid] = pod
        self._push(pod.node, pod)

    def _put_budget(self, budget: PodDisruptionBudget) -> None:
        budget = replace(budget, resource_version=self.next_revision())
        self.budgets[budget.key] = budget
        for watch in list(self._watches.of_budgets):
            watch.push(budget)

    def _push(self, node: str, change: PodChange) -> None:
        for watch in list(self._watches.of_pods.get(node, ())):
            watch.push(change)

    def next_revision(self) -> str:
        """Return the resourceVersion of an object that changes now."""
        self._revision += 1
        return str(self._revision)


def _drop(watches: list[SimulatedWatch[PodChange]] | list[SimulatedWatch[BudgetChange]], one: object) -> None:
    for index, watch in enumerate(watches):
        if watch is one:
            del watches[index]
            return
