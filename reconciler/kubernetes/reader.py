"""READ FIRST: what a pass reads of the cluster, in the plain way: a request for each read, one at a time.

`scale/cluster.py` reads the same of thousands of nodes, and of an API server that answers slowly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from reconciler.kubernetes import kept_records, objects
from reconciler.kubernetes import ledger as ledgers
from reconciler.kubernetes.addons import read_agents, read_remediator
from reconciler.kubernetes.attachments import attachments_on, left
from reconciler.kubernetes.connection import (
    BUDGETS,
    CORE,
    NODES,
    PODS,
    VERSION,
    ApiPath,
    Connection,
    api,
    core,
    on_node,
)
from reconciler.kubernetes.nodes import CordonOwner, read_node
from reconciler.kubernetes.reconcilers import read_reconciler
from reconciler.kubernetes.wire.formats import Format, budget_format, node_format, pod_format
from reconciler.kubernetes.wire.lists import in_order, list_all
from reconciler.model import limits
from reconciler.model.clocks import Disagreement
from reconciler.model.errors import Forbidden, NotFound, Rejected, Unauthorized
from reconciler.model.instructions import PersonHold
from reconciler.model.limits import is_object_name
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import Look, LookRequest, with_rest
from reconciler.model.reconciler import Reconciler
from reconciler.model.snapshot import Agents, Ledger, Remediator, ServerVersion

Value = TypeVar("Value")

NAMESPACE = "node-maintenance"
AGENT_NAMESPACE = "node-maintenance-agent"
AGENT = "node-maintenance-agent"


class PlainReader:
    """ClusterReader for the API server; safe for threads."""

    def __init__(
        self,
        connection: Connection,
        *,
        namespace: str = NAMESPACE,
        agent_namespace: str = AGENT_NAMESPACE,
        agent: str = AGENT,
    ) -> None:
        """Use this connection. Our ConfigMap is in this namespace."""
        self._connection = connection
        self._namespace = namespace
        self._agent_namespace, self._agent = agent_namespace, agent
        self._cordons = CordonOwner(connection)
        self._nodes: Mapping[str, Node] = {}
        """The nodes of the last list, by name."""

    def look(self, request: LookRequest) -> Look:
        """Return what a pass begins with, each part by a request of its own; see ClusterReader.

        Unauthorized if we may not list nodes.
        """
        return self._with_rest(request, Look(self._listed(request.nodes)))

    def _with_rest(self, request: LookRequest, look: Look) -> Look:
        """Return the look at the nodes with what else was requested."""
        self._nodes = look.nodes
        return with_rest(look, request, self)

    def nodes(self, wanted: Wanted) -> tuple[Node, ...]:
        """Return all nodes, sorted by name, by one consistent read; Unauthorized if we may not list them."""
        self._nodes = self._listed(wanted)
        return tuple(self.completed(Look(self._nodes).in_order, wanted))

    def node(self, name: str, wanted: Wanted) -> Node:
        """Return the node with a user-supplied name; NotFound if there is none."""
        if not is_object_name(name):
            raise NotFound(f"{name!r} is no node's name", status=404)
        with _for_the_pass():
            node = read_node(self._connection, name, wanted)
        return self.completed([node], wanted)[0]

    def completed(self, nodes: Sequence[Node], wanted: Wanted) -> Sequence[Node]:
        """Return these nodes, those with the records that our ConfigMap keeps for them.

        If we may not read it, these records can't be read.
        """
        prefix = wanted.annotation_prefix
        if not any(kept_records.is_marked(node, prefix) for node in nodes):
            return nodes
        try:
            data = self._ledger_data()
        except Forbidden:
            return [kept_records.unreadable(node, prefix) for node in nodes]
        kept = kept_records.load(data.get(kept_records.KEPT))
        return [kept_records.with_record(node, prefix, kept) for node in nodes]

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of one node, or of all, sorted by namespace and name."""
        with _for_the_pass():
            fields = on_node(node) if node is not None else ""
            return in_order(self._list(PODS, pod_format(placement=placement), fields=fields))

    def pods_with(self, label: str) -> tuple[Pod, ...]:
        """Return the pods of all nodes that have a label of this key, sorted by namespace and name."""
        with _for_the_pass():
            return in_order(self._list(PODS, pod_format(), labels=label))

    def unplaced(self) -> tuple[Pod, ...]:
        """Return the pending pods that have no node yet."""
        return tuple(self._list(PODS, pod_format(), fields="spec.nodeName=,status.phase=Pending"))

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Return every PodDisruptionBudget."""
        with _for_the_pass():
            return tuple(self._list(BUDGETS, budget_format()))

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Return the labels of every namespace, by name."""
        with _for_the_pass():
            listed, _ = objects.get_list(self._connection, CORE / "namespaces", objects.OnlyMetadata)
        return {namespace.metadata.name: namespace.metadata.labels or {} for namespace in listed}

    def gone_daemonsets(self, pods: Iterable[Pod]) -> frozenset[str]:
        """Return the DaemonSets (`namespace/name`) that own these pods and no longer exist."""
        owners = {
            f"{pod.namespace}/{pod.owner.name}" for pod in pods if pod.owner and pod.owner.kind == "DaemonSet"
        }
        if not owners:
            return frozenset()
        with _for_the_pass():
            place = api("apps", "v1") / "daemonsets"
            listed, _ = objects.get_list(self._connection, place, objects.OnlyMetadata)
        return frozenset(owners - {f"{each.metadata.namespace}/{each.metadata.name}" for each in listed})

    def agents(self) -> Agents:
        """Return the state of the node agent; see `read_agents`. The last list of nodes says for how many."""
        needed = sum(not (node.runs_no_agent or node.is_windows) for node in self._nodes.values())
        return read_agents(self._agent_set, self._agent_pods, needed)

    def remediator(self) -> Remediator:
        """Return AKS's remediator-config; see `read_remediator`."""
        return read_remediator(self._remediator_config)

    def server_version(self) -> ServerVersion:
        """Return the version of the API server; what can't be read is a `problem` of the result."""
        try:
            version = self._version()
        except (Forbidden, NotFound, Rejected) as error:
            return ServerVersion(problem=str(error))
        return ServerVersion(limits.text(version.gitVersion, limits.NAME))

    def ledger(self) -> Ledger:
        """Return our ConfigMap's ledger, an empty one if there is none yet; Rejected if it can't be read."""
        return ledgers.from_data(self._ledger_data())

    def holds(self) -> tuple[PersonHold, ...]:
        """Return the holds of all nodes and of pools, read now."""
        return ledgers.read_holds(self._connection, self._namespace)

    def disagreement(self) -> Disagreement | None:
        """Return what answers say that contradict the time of passes, None if they agree."""
        return self._connection.time.disagreement()

    def cordoned_by_us(self, nodes: Sequence[Node]) -> frozenset[str]:
        """Return which of these cordoned nodes we cordoned, by their `managedFields`."""
        return self._cordons.ours(nodes)

    def uncordoned_by(self, node: Node) -> str:
        """Return who uncordoned the node, by its `managedFields`; empty if that is not known."""
        return self._cordons.uncordoned_by(node)

    def attached(self, staying: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[str, ...]]:
        """Return by node the volumes that are still attached, but for claims of pods that stay there."""
        attached = attachments_on(self._connection, staying.keys())
        return {node: left(self._connection, attached[node], claims) for node, claims in staying.items()}

    def reconciler_of(self, namespace: str) -> Reconciler:
        """Return who makes passes, by the Lease in this namespace."""
        return read_reconciler(self._connection, namespace, self._connection.time.now, observes=False)

    # The requests that several of these reads share, or that come ahead of them at scale.

    def _list(self, path: ApiPath, form: Format[Value], *, fields: str = "", labels: str = "") -> list[Value]:
        return list_all(self._connection, path, form, fields=fields, labels=labels).items

    def _listed(self, wanted: Wanted) -> Mapping[str, Node]:
        with _for_the_pass():
            return {node.name: node for node in self._list(NODES, node_format(wanted))}

    def _ledger_data(self) -> Mapping[str, str]:
        return ledgers.read_data(self._connection, self._namespace)

    def _agent_set(self) -> objects.DaemonSet:
        place = api("apps", "v1", self._agent_namespace) / "daemonsets" / self._agent
        return objects.get(self._connection, place, objects.DaemonSet)

    def _agent_pods(self) -> list[Pod]:
        labels = f"app.kubernetes.io/name={self._agent}"
        return self._list(core(self._agent_namespace) / "pods", pod_format(), labels=labels)

    def _remediator_config(self) -> objects.ConfigMap:
        place = core("kube-system") / "configmaps" / "remediator-config"
        return objects.get(self._connection, place, objects.ConfigMap)

    def _version(self) -> objects.Version:
        return objects.get(self._connection, VERSION, objects.Version)


@contextmanager
def _for_the_pass() -> Iterator[None]:
    """Turn a 403 for what every pass needs into Unauthorized."""
    try:
        yield
    except Forbidden as error:
        raise Unauthorized(str(error), status=error.status, reason=error.reason, needs=error.needs) from error
