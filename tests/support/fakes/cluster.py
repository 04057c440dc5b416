"""A cluster in memory behind the ports of a pass, with a hook around every write; and drains that obey.

It stands in for the API server in what passes rely on: a patch names what was seen, a conflict is a
conflict, and whoever is killed between two writes leaves the first one behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.errors import Conflict, NotFound
from reconciler.eviction.survey import survey
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.maintenance import Maintenance, MaintenanceWrite
from reconciler.model.node import Condition, Node, Wanted
from reconciler.model.notification import Notification
from reconciler.model.outcome import Outcome
from reconciler.model.outside import Self, WritableOutside
from reconciler.model.own import is_as_seen
from reconciler.model.plan import ConditionsWrite, NodeWrite, Plan
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import Machines, SourceClient
from reconciler.model.snapshot import Agents, Ledger, Remediator
from reconciler.run import run_pass
from reconciler.settings.schema import Settings


class Killed(BaseException):
    """The process has been killed; nothing of it catches this."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write that was asked for: `verb` patch, ledger, event or evict; `what` says of which."""

    verb: str
    node: str
    what: object = None


def _nothing(write: Write) -> None:
    del write


@dataclass(slots=True)
class FakeCluster:
    """The objects, and every write in order; `before` and `after` may raise around each write."""

    objects: dict[str, Node] = field(default_factory=dict)
    pods_on: dict[str, list[Pod]] = field(default_factory=dict)
    daemonset: Agents = Agents(installed=True)
    config: Remediator = Remediator()
    configmap: Ledger = Ledger()
    clock_skew: timedelta | None = timedelta()
    views: dict[str, Maintenance] | None = None
    writes: list[Write] = field(default_factory=list)
    before: Callable[[Write], None] = _nothing
    after: Callable[[Write], None] = _nothing
    revision: int = 1

    def put(self, *nodes: Node) -> None:
        """Let somebody else write nodes."""
        for node in nodes:
            self.revision += 1
            self.objects[node.name] = replace(node, resource_version=str(self.revision))

    def change(self, name: str, **what: object) -> None:
        """Let somebody else change a node."""
        self.put(replace(self.objects[name], **what))  # type: ignore[arg-type]  # any field of a node

    def annotate(self, name: str, key: str, value: str | None) -> None:
        """Let somebody else write an annotation, or take it away."""
        node = self.objects[name]
        self.change(name, annotations=_changed(node.annotations, {key: value}))

    def set_condition(self, name: str, condition: Condition) -> None:
        """Let somebody else write a condition."""
        others = tuple(one for one in self.objects[name].conditions if one.type != condition.type)
        self.change(name, conditions=(*others, condition))

    # The reader.

    def nodes(self, wanted: Wanted) -> tuple[Node, ...]:
        """Every node, with what was asked for."""
        del wanted
        return tuple(node for _, node in sorted(self.objects.items()))

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """The pods of one node, or of all."""
        del placement
        if node is not None:
            return tuple(self.pods_on.get(node, ()))
        return tuple(pod for _, pods in sorted(self.pods_on.items()) for pod in pods)

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """No budgets: refusals are the drainer's tests' affair."""
        return ()

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """No labels on namespaces."""
        return {}

    def agents(self) -> Agents:
        """The agent's DaemonSet."""
        return self.daemonset

    def remediator(self) -> Remediator:
        """AKS's remediator-config."""
        return self.config

    def ledger(self) -> Ledger:
        """Our ConfigMap."""
        return self.configmap

    def maintenances(self, prefix: str) -> tuple[Maintenance, ...] | None:
        """The NodeMaintenance objects; without `views` the CRD is not installed."""
        del prefix
        return None if self.views is None else tuple(self.views.values())

    def skew(self) -> timedelta | None:
        """Our clock minus the server's."""
        return self.clock_skew

    # The writer.

    def patch_node(self, write: NodeWrite) -> None:
        """Patch as the real client does: only what is as it was seen."""
        request = Write("patch", write.node, write)
        self.before(request)
        node = self.objects.get(write.node)
        if node is None:
            raise NotFound(f"nodes {write.node!r} not found", status=404)
        if node.resource_version != write.resource_version and not is_as_seen(node, write):
            raise Conflict("the object has been modified", status=409)
        if node.uid != write.uid:
            raise Conflict("the UID in the precondition does not match", status=409)
        unschedulable = node.unschedulable if write.unschedulable is None else write.unschedulable
        self.put(
            replace(
                node,
                unschedulable=unschedulable,
                labels=_changed(node.labels, write.labels),
                annotations=_changed(node.annotations, write.annotations),
            )
        )
        self.writes.append(request)
        self.after(request)

    def patch_conditions(self, write: ConditionsWrite) -> None:
        """Put conditions in, by their type, and take others away."""
        request = Write("conditions", write.node, write)
        self.before(request)
        node = self.objects.get(write.node)
        if node is None:
            raise NotFound(f"nodes {write.node!r} not found", status=404)
        if node.uid != write.uid:
            raise Conflict("the UID in the precondition does not match", status=409)
        have = {one.type: one for one in node.conditions if one.type not in write.gone}
        for one in write.put:
            old = have.get(one.type)
            since = one.transition or (old.transition if old else None)
            have[one.type] = replace(one, transition=since)
        self.put(replace(node, conditions=tuple(have.values())))
        self.writes.append(request)
        self.after(request)

    def write_maintenance(self, write: MaintenanceWrite) -> None:
        """Make, change or delete a NodeMaintenance."""
        request = Write("nodemaintenance", write.node, write)
        self.before(request)
        if self.views is None:
            raise NotFound("the server could not find the requested resource", status=404)
        if write.wanted is None:
            self.views.pop(write.name, None)
        else:
            if write.exists is not (write.name in self.views):
                raise NotFound(f"nodemaintenances {write.name!r}: exists is {not write.exists}", status=404)
            self.views[write.name] = write.wanted
        self.writes.append(request)
        self.after(request)

    def write_ledger(self, ledger: Ledger) -> None:
        """Write our ConfigMap."""
        request = Write("ledger", "", ledger)
        self.before(request)
        self.configmap = ledger
        self.writes.append(request)
        self.after(request)

    def notify(self, notification: Notification) -> None:
        """Write an Event."""
        request = Write("event", notification.node, notification.notice)
        self.before(request)
        self.writes.append(request)
        self.after(request)

    def evict(self, pod: Pod) -> None:
        """Evict; the pod ends at once and comes up elsewhere, which is nobody's business here."""
        request = Write("evict", pod.node, pod)
        self.before(request)
        self.pods_on[pod.node] = [one for one in self.pods_on[pod.node] if one.uid != pod.uid]
        self.writes.append(request)
        self.after(request)


def _changed(old: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**old, **wanted}
    return {key: value for key, value in merged.items() if value is not None}


@dataclass(slots=True)
class FakeDrains:
    """Drains in the process of a pass: they begin when told, and evict when `carry_on` is called."""

    cluster: FakeCluster
    orders: dict[str, DrainOrder] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    started_on_open_nodes: list[str] = field(default_factory=list)

    def start(self, order: DrainOrder) -> None:
        """Begin, and remember whether the node was closed at that moment (law 1)."""
        node = self.cluster.objects.get(order.node)
        if node is None or not node.unschedulable:
            self.started_on_open_nodes.append(order.node)
        self.orders[order.node] = order
        self.ended.discard(order.node)

    def stop(self, node: str) -> None:
        """Evict nothing more."""
        self.orders.pop(node, None)

    def progress(self) -> Mapping[str, DrainProgress]:
        """Every drain that was begun here."""
        return {
            name: DrainProgress(name, order.uid, Phase.DRAINED if name in self.ended else Phase.RUNNING)
            for name, order in self.orders.items()
        }

    def carry_on(self, now: datetime) -> None:
        """Evict all that may go."""
        for name, order in sorted(self.orders.items()):
            found = survey(self.cluster.pods(name), order.options, now=now, own_pod=order.own_pod)
            for judged in found.to_go:
                self.cluster.evict(judged.pod)
            if not found.waiting:
                self.ended.add(name)


def outside_of(
    cluster: FakeCluster,
    drains: FakeDrains,
    *,
    own_node: str | None = None,
    machines: Machines | None = None,
    cloud: SourceClient | None = None,
) -> WritableOutside:
    """What a pass over this cluster is given; `cloud` stands for ARM."""
    return WritableOutside(
        reader=cluster,
        writer=cluster,
        drainer=drains,
        notifier=cluster,
        clients={"arm": cloud} if cloud is not None else {},
        machines=machines,
        itself=Self(own_node),
    )


def one_pass(
    cluster: FakeCluster,
    drains: FakeDrains,
    settings: Settings,
    now: datetime,
    machines: Machines | None = None,
    cloud: SourceClient | None = None,
) -> tuple[Plan, tuple[Outcome, ...]]:
    """Observe, assess, decide and act on a fake cluster."""
    return run_pass(outside_of(cluster, drains, machines=machines, cloud=cloud), settings, now)


def cluster_of(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> FakeCluster:
    """A cluster of these nodes and pods."""
    cluster = FakeCluster()
    cluster.put(*nodes)
    for pod in pods:
        cluster.pods_on.setdefault(pod.node, []).append(pod)
    return cluster
