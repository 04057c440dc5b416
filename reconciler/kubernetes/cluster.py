"""What a pass reads of the cluster and writes to it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes import eviction, kept_records, maintenances, node_writing, objects
from reconciler.kubernetes import ledger as ledgers
from reconciler.kubernetes.beside import ThreadsBeside
from reconciler.kubernetes.connection import BUDGETS, CORE, NODES, PODS, VERSION, Connection, api, core
from reconciler.kubernetes.lease import read_reconciler
from reconciler.kubernetes.node_store import NodeStore
from reconciler.kubernetes.node_writing import CordonOwner
from reconciler.kubernetes.wire.lists import (
    budget_format,
    count_all,
    list_all,
    list_pods,
    node_format,
    pod_format,
)
from reconciler.kubernetes.workflow_objects import read_hypervisors, read_lease, take_lease, write_hypervisor
from reconciler.model import limits
from reconciler.model.clocks import Disagreement
from reconciler.model.errors import ClusterError, Forbidden, Late, NotFound, Rejected, Unauthorized
from reconciler.model.instructions import PersonHold
from reconciler.model.limits import is_object_name
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.polling import MemoryForm
from reconciler.model.ports import COUNTS, Followed, What
from reconciler.model.reconciler import Reconciler
from reconciler.model.snapshot import Agents, Ledger, Remediator, ServerVersion
from reconciler.model.values import replace
from reconciler.model.workflow import Hypervisor, HypervisorWrite, LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.writes import (
    ConditionsWrite,
    LabelsWrite,
    Maintenance,
    MaintenanceWrite,
    NodeWrite,
    TaintWrite,
    WriteAnswer,
)

log = logging.getLogger(__name__)

Value = TypeVar("Value")

KEPT_FOR = 10.0
"""Seconds for which passes of one process keep the state of the agents, and what else rarely changes."""

KEPT_LONGER = 20.0
"""An answer that took long is kept for so many times as long: the pods of all agents may be many."""

LEDGER_FOR = 0.1
"""Seconds for which the next pass has the ledger of a pass. Holds are read again before a drain begins."""

LEDGER_COUNTS = 600.0
"""Seconds for which the last ledger counts while it can't be read. Only a hold of people may be missed."""

OLD = 5.0
"""Seconds after which a ledger is not the one of this pass."""

PUBLISHED_COUNTS = 60.0
"""Seconds for which an agent that has published something counts as one that works."""

AGENTS_COUNT = 600.0
"""Seconds for which the state of the agents, and what else rarely changes, counts while it can't be read."""

_LEDGER = ("the ledger",)

NAMESPACE = "node-maintenance"
AGENT_NAMESPACE = "node-maintenance-agent"
AGENT = "node-maintenance-agent"
_REMEDIATOR = core("kube-system") / "configmaps" / "remediator-config"


class Cluster:
    """ClusterReader and ClusterWriter for the API server; safe for threads."""

    def __init__(
        self,
        connection: Connection,
        *,
        guard: Guard | None = None,
        namespace: str = NAMESPACE,
        agent_namespace: str = AGENT_NAMESPACE,
        agent: str = AGENT,
        wall: Callable[[], float] = time.time,
        field_manager: str = "",
        memories: Sequence[MemoryForm] = (),
        store: NodeStore | None = None,
        beside: ThreadsBeside | None = None,
    ) -> None:
        """Use this connection, and call the guard before each write; without a guard it only reads.

        `field_manager` is the name for what it writes on nodes, by default that of passes. The ledger that
        it reads and writes has the memories of these forms; others stay as they are. The `store` gets what
        is written on nodes, and has them for passes that follow. What is neither the nodes nor the ledger is
        read `beside`.

        `wall` (Unix time) is for the time that a Kubernetes Event shows to people.
        """
        self._connection = connection
        self._guard = guard or read_only
        self._namespace = namespace
        self._agent_namespace = agent_namespace
        self._agent = agent
        self._wall = wall
        self._nodes: Mapping[str, Node] = {}
        self._cordons = CordonOwner(connection)
        self._labels = node_writing.LabelWriter(connection, self._guard)
        self._field_manager = field_manager
        self._memories = memories
        self._store = store
        self._beside = beside or ThreadsBeside()
        self._kept: dict[str, tuple[Any, float]] = {}

    def read_ahead(self, *, agents: bool, remediator: bool, server: bool) -> None:
        """See EarlyReader."""
        self._beside.begin(_LEDGER, self._ledger_data, lasts=self._ledger_lasts, counts=LEDGER_COUNTS)
        for name, wanted in (("agents", agents), ("remediator", remediator), ("server", server)):
            if wanted and self._recent(name) is None:
                what, read = self._rare(name)
                self._beside.begin(what, read, counts=AGENTS_COUNT)

    def _rare(self, name: str) -> tuple[What, Callable[[], Any]]:
        """Return what is read rarely, and how."""
        return {
            "agents": (("the DaemonSet of the node agent",), self._agent_set),
            "remediator": (("AKS's remediator-config",), self._remediator_map),
            "server": (("the version of the API server",), self._version),
        }[name]

    def _recent(self, name: str) -> Any:
        """Return an answer that is kept, None if there is none or it is too old."""
        value, until = self._kept.get(name, (None, 0.0))
        return value if time.monotonic() < until else None

    def _keep(self, name: str, read: Callable[[], Value]) -> Value:
        """Return what `read` does. For passes that follow each other, an answer without a problem is kept."""
        if self._store is None:
            return read()
        kept: Value | None = self._recent(name)
        if kept is not None:
            return kept
        began = time.monotonic()
        answer = read()
        now = time.monotonic()
        if not getattr(answer, "problem", ""):
            self._kept[name] = answer, now + max(KEPT_FOR, KEPT_LONGER * (now - began))
        return answer

    def _read(self, name: str) -> Any:
        what, read = self._rare(name)
        return self._beside.read(what, read, counts=AGENTS_COUNT)

    def nodes(self, wanted: Wanted) -> tuple[Node, ...]:
        """Return all nodes, sorted by name, by one consistent read; Unauthorized if we may not list them."""
        with _for_the_pass():
            listed = list_all(self._connection, NODES, node_format(wanted))
        self._nodes = {node.name: node for node in listed.items}
        nodes = self.completed(listed.items, wanted)
        return tuple(sorted(nodes, key=lambda node: node.name))

    def followed(self, wanted: Wanted) -> Followed | None:
        """See FollowingReader."""
        if self._store is None:
            return None
        if self._store.count_is_due():
            with suppress(ClusterError):
                count = partial(count_all, self._connection, NODES)
                self._store.counted(self._beside.read(("the number of nodes",), count))
        followed = self._store.followed(wanted)
        if followed is not None:
            self._nodes = followed.nodes
        return followed

    def completed(self, nodes: Sequence[Node], wanted: Wanted) -> Sequence[Node]:
        """See FollowingReader."""
        return self._with_records(nodes, wanted.annotation_prefix)

    def attached(self, staying: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[str, ...]]:
        """See AttachmentReader."""

        def read() -> Mapping[str, tuple[str, ...]]:
            found = eviction.attachments(self._connection, staying.keys())
            left = partial(eviction.left, self._connection)
            return {node: left(found[node], claims) for node, claims in staying.items()}

        return self._beside.read(("VolumeAttachments of", *sorted(staying)), read)

    def node(self, name: str, wanted: Wanted) -> Node:
        """Return the node with a user-supplied name; NotFound if there is none."""
        if not is_object_name(name):
            raise NotFound(f"{name!r} is no node's name", status=404)
        with _for_the_pass():
            read = node_writing.read_node(self._connection, name, wanted)
        return self._with_records([read], wanted.annotation_prefix)[0]

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of one node, or of all, sorted by namespace and name."""

        def read() -> tuple[Pod, ...]:
            with _for_the_pass():
                return list_pods(self._connection, node, placement=placement)

        # Those of all nodes are many.
        counts = COUNTS if node is not None else 0.0
        of = ("all nodes" if node is None else node, *(("with placement",) if placement else ()))
        return self._beside.read(("pods of", *of), read, counts=counts)

    def pods_with(self, label: str) -> tuple[Pod, ...]:
        """Return the pods of all nodes that have a label of this key, sorted by namespace and name."""

        def read() -> tuple[Pod, ...]:
            with _for_the_pass():
                return list_pods(self._connection, labels=label)

        what = ("pods with the label", label)
        return self._keep(what[0] + label, lambda: self._beside.read(what, read, counts=COUNTS))

    def unplaced(self) -> tuple[Pod, ...]:
        """See UnplacedReader."""
        fields, what = "spec.nodeName=,status.phase=Pending", "pods without a node"

        def read() -> tuple[Pod, ...]:
            return tuple(list_all(self._connection, PODS, pod_format(), fields=fields).items)

        return self._keep(what, lambda: self._beside.read((what,), read, counts=COUNTS))

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Return every PodDisruptionBudget."""

        def read() -> tuple[PodDisruptionBudget, ...]:
            with _for_the_pass():
                return tuple(list_all(self._connection, BUDGETS, budget_format()).items)

        return self._beside.read(("PodDisruptionBudgets",), read, counts=COUNTS)

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Return the labels of every namespace, by name."""

        def read() -> Mapping[str, Mapping[str, str]]:
            with _for_the_pass():
                found, _ = objects.get_list(self._connection, CORE / "namespaces", objects.OnlyMetadata)
            return {one.metadata.name: one.metadata.labels or {} for one in found}

        return self._beside.read(("namespaces",), read, counts=COUNTS)

    def gone_daemonsets(self, pods: Iterable[Pod]) -> frozenset[str]:
        """Return the DaemonSets (`namespace/name`) that own these pods and no longer exist."""
        owners = {
            f"{pod.namespace}/{pod.owner.name}" for pod in pods if pod.owner and pod.owner.kind == "DaemonSet"
        }
        if not owners:
            return frozenset()
        with _for_the_pass():
            found, _ = objects.get_list(
                self._connection, api("apps", "v1") / "daemonsets", objects.OnlyMetadata
            )
        return frozenset(owners - {f"{one.metadata.namespace}/{one.metadata.name}" for one in found})

    def agents(self) -> Agents:
        """Return the state of the node agent's DaemonSet; its pods are read if one is missing or not ready.

        One is missing if the last list of nodes had more nodes that need an agent than the DaemonSet has.
        An agent that has just published something works, whatever its probe said before that: kubelet says
        only later that it is ready, and then nothing wakes a pass. What can't be read is a `problem` of the
        result; only what ends the whole pass is raised.
        """
        agents = self._keep("agents", self._agents_now)
        if self._store is None or not (agents.not_ready or agents.covered is not None):
            return agents
        working = self._store.published(PUBLISHED_COUNTS)
        covered = agents.covered
        return replace(
            agents,
            not_ready=agents.not_ready - working,
            covered=covered | working if covered is not None else None,
        )

    def _agents_now(self) -> Agents:
        try:
            status = self._read("agents").status
        except NotFound:
            return Agents(installed=False)
        except (Forbidden, Rejected) as error:
            return Agents(installed=True, problem=str(error), needs=error.needs)
        # A taint that the DaemonSet does not tolerate leaves a node out, and nothing in its status says so.
        need_agents = sum(not (node.runs_no_agent or node.is_windows) for node in self._nodes.values())
        expected = max(status.desiredNumberScheduled, need_agents)
        if status.numberReady >= expected:
            return Agents(installed=True)
        return self._agents_by_pod(expected)

    def remediator(self) -> Remediator:
        """Return AKS's remediator-config; its key appConfig is `{"Cluster":{"OnFreeze":{"Enabled":true}}}`.

        What can't be read is a `problem` of the result.
        """
        return self._keep("remediator", self._remediator_now)

    def _remediator_now(self) -> Remediator:
        try:
            found = self._read("remediator")
        except NotFound:
            return Remediator()
        except (Forbidden, Rejected) as error:
            return Remediator(config_found=False, problem=str(error), needs=error.needs)
        text = (found.data or {}).get("appConfig", "{}")
        try:
            enabled = json.loads(text).get("Cluster", {}).get("OnFreeze", {}).get("Enabled", False)
        except (ValueError, AttributeError) as error:
            return Remediator(config_found=True, problem=f"appConfig can't be read: {error}")
        return Remediator(config_found=True, on_freeze=enabled is True)

    def server_version(self) -> ServerVersion:
        """Return the version of the API server; what can't be read is a `problem` of the result."""
        return self._keep("server", self._server_version_now)

    def _server_version_now(self) -> ServerVersion:
        try:
            found = self._read("server")
        except (Forbidden, NotFound, Rejected) as error:
            return ServerVersion(problem=str(error))
        return ServerVersion(limits.text(found.gitVersion, limits.NAME))

    def ledger(self) -> Ledger:
        """Return our ConfigMap's ledger, an empty one if there is none yet; Rejected if it can't be read.

        See ClusterReader: it may be an older one.
        """
        data, at = self._last_ledger()
        age = time.monotonic() - at
        as_of = self._connection.time.now() - timedelta(seconds=age) if age > OLD else None
        return replace(ledgers.from_data(data, self._memories), as_of=as_of)

    def holds(self) -> tuple[PersonHold, ...]:
        """See ClusterReader."""
        return ledgers.read_holds(self._connection, self._namespace)

    def maintenances(self, prefix: str) -> tuple[Maintenance, ...] | None:
        """Return our NodeMaintenance objects; None if the CRD is not installed."""
        read = partial(maintenances.read, self._connection, prefix)
        return self._beside.read(("NodeMaintenance objects", prefix), read)

    def lease(self, ref: LeaseRef) -> LeaseSeen | None:
        """Return a Lease of a check, None if it does not exist."""
        return self._beside.read(("the Lease", str(ref)), partial(read_lease, self._connection, ref))

    def hypervisors(self) -> tuple[Hypervisor, ...] | None:
        """Return all Hypervisors, None if the cluster does not have the kind."""
        return self._beside.read(("Hypervisors",), partial(read_hypervisors, self._connection))

    def disagreement(self) -> Disagreement | None:
        """Return what answers say that contradict the time of passes, None if they agree."""
        return self._connection.time.disagreement()

    def cordoned_by_us(self, nodes: Sequence[Node]) -> frozenset[str]:
        """See CordonReader."""
        what = ("who cordoned", *sorted(node.uid for node in nodes))
        with suppress(Late):
            return self._beside.read(what, partial(self._cordons.ours, nodes), most=1)
        return frozenset()

    def uncordoned_by(self, node: Node) -> str:
        """See CordonReader."""
        with suppress(Late):
            return self._beside.read(
                ("who uncordoned", node.name, node.uid), partial(self._cordons.uncordoned_by, node)
            )
        return ""

    def reconciler_of(self, namespace: str) -> Reconciler:
        """See LockReader."""
        now = self._connection.time.now
        read = partial(read_reconciler, self._connection, namespace, now, observes=False)
        return self._beside.read(("the lock in namespace", namespace), read)

    def patch_node(self, write: NodeWrite) -> WriteAnswer:
        """Patch a node; see node_writing.patch_node, and kept_records for a record that it can't hold."""
        send = partial(
            node_writing.patch_node,
            self._connection,
            self._guard,
            self._field_manager,
            wrote=self._store.wrote if self._store is not None else node_writing.nobody,
        )
        return kept_records.patch_node(send, self._change_records, write, self._nodes.keys())

    def patch_conditions(self, write: ConditionsWrite) -> None:
        """Patch a node's status; see node_writing.patch_conditions."""
        node_writing.patch_conditions(self._connection, self._guard, write)

    def patch_taint(self, write: TaintWrite) -> str:
        """Add or remove a taint of a node; see node_writing.patch_taint."""
        return node_writing.patch_taint(self._connection, self._guard, write)

    def patch_labels(self, write: LabelsWrite) -> str:
        """Set labels of a node; see LabelWriter."""
        return self._labels.write(write)

    def write_maintenance(self, write: MaintenanceWrite) -> None:
        """Create, change or delete a NodeMaintenance."""
        maintenances.write(self._connection, self._guard, write)

    def take_lease(self, take: LeaseTake) -> None:
        """Take a Lease for a node; see workflow_objects.take_lease."""
        take_lease(self._connection, self._guard, take)

    def write_hypervisor(self, write: HypervisorWrite) -> None:
        """Set fields of a Hypervisor; see workflow_objects.write_hypervisor."""
        write_hypervisor(self._connection, self._guard, write)

    def write_ledger(self, ledger: Ledger) -> None:
        """Write our ConfigMap, or create it; the last start never moves back."""

        def change(found: Mapping[str, str]) -> Mapping[str, str | None]:
            before = ledgers.from_data(found, self._memories)
            merged = ledger.merged(before)
            return {} if found and merged == before else ledgers.to_data(merged, found, self._memories)

        self._change_data(change)

    def _change_records(self, change: kept_records.Change) -> None:

        def data(found: Mapping[str, str]) -> Mapping[str, str | None]:
            before = kept_records.load(found.get(kept_records.KEPT))
            after = change(before)
            return {kept_records.KEPT: kept_records.dump(after)} if after != before else {}

        self._change_data(data)

    def _change_data(self, change: Callable[[Mapping[str, str]], Mapping[str, str | None]]) -> None:
        written: dict[str, str] = {}

        def changed(found: Mapping[str, str]) -> Mapping[str, str | None]:
            nonlocal written
            changes = change(found)
            written = {key: text for key, text in {**found, **changes}.items() if text is not None}
            return changes

        ledgers.change_data(self._connection, self._namespace, changed, self._guard)
        # The last ledger has what this process has written, also while it can't be read.
        self._beside.note(_LEDGER, (written, time.monotonic()), counts=LEDGER_COUNTS)

    def _with_records(self, nodes: Sequence[Node], prefix: str) -> Sequence[Node]:
        """Return the nodes, those with the records that our ConfigMap keeps for them.

        If we may not read it, these records can't be read.
        """
        if not any(kept_records.is_marked(node, prefix) for node in nodes):
            return nodes
        try:
            data, _ = self._last_ledger()
        except Forbidden:
            return [kept_records.unreadable(node, prefix) for node in nodes]
        kept = kept_records.load(data.get(kept_records.KEPT))
        return [kept_records.with_record(node, prefix, kept) for node in nodes]

    def _agents_by_pod(self, desired: int) -> Agents:
        place = core(self._agent_namespace) / "pods"
        try:
            labels = f"app.kubernetes.io/name={self._agent}"
            read = partial(list_all, self._connection, place, pod_format(), labels=labels)
            pods = self._beside.read(("pods of the node agent",), read, counts=AGENTS_COUNT).items
        except (Forbidden, NotFound, Rejected) as error:
            return Agents(installed=True, problem=str(error), needs=error.needs)
        # During a rollout of the DaemonSet a node may have two pods: one that is ready is enough.
        ready = {pod.node for pod in pods if pod.ready}
        covered = frozenset(pod.node for pod in pods if pod.node)
        return Agents(
            installed=True, not_ready=covered - ready, covered=covered if len(covered) < desired else None
        )

    def _agent_set(self) -> objects.DaemonSet:
        place = api("apps", "v1", self._agent_namespace) / "daemonsets" / self._agent
        return objects.get(self._connection, place, objects.DaemonSet)

    def _remediator_map(self) -> objects.ConfigMap:
        return objects.get(self._connection, _REMEDIATOR, objects.ConfigMap)

    def _version(self) -> objects.Version:
        return objects.get(self._connection, VERSION, objects.Version)

    def _last_ledger(self) -> tuple[Mapping[str, str], float]:
        """Return the data of our ConfigMap, and when they were asked for (seconds, monotonic)."""
        lasts = self._ledger_lasts
        return self._beside.read(_LEDGER, self._ledger_data, lasts=lasts, counts=LEDGER_COUNTS, needed=True)

    @property
    def _ledger_lasts(self) -> float:
        return LEDGER_FOR if self._store is not None else 0.0

    def _ledger_data(self) -> tuple[Mapping[str, str], float]:
        began = time.monotonic()
        return ledgers.read_data(self._connection, self._namespace), began


@contextmanager
def _for_the_pass() -> Iterator[None]:
    """Turn a 403 for what every pass needs into Unauthorized."""
    try:
        yield
    except Forbidden as error:
        raise Unauthorized(str(error), status=error.status, reason=error.reason, needs=error.needs) from error
