"""The simulated cluster as our program sees it: three ports in one class, whose calls others let fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.model.clocks import CLOCK_TOLERANCE, Disagreement
from reconciler.model.errors import ClusterError, Conflict, NotFound, NotKept, Rejected, TooManyRequests
from reconciler.model.instructions import PersonHold
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import Condition, Node, Wanted
from reconciler.model.outcome import CORDON, RECORD, UNCORDON
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetChange, Look, LookRequest, Notification, PodChange, with_rest
from reconciler.model.snapshot import Agents, Ledger, Remediator, ServerVersion
from reconciler.model.values import replace
from reconciler.model.writes import (
    CONDITIONS,
    LABELS,
    TAINT,
    ConditionsWrite,
    LabelsWrite,
    NodeWrite,
    TaintWrite,
    WriteAnswer,
    is_as_seen,
    not_kept,
    shows_intent,
    taken_back,
)
from reconciler.simulation.clock import Actor, SimulatedWatch
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.store import KubernetesEvent

HEARTBEAT = timedelta(minutes=5)
"""How often node-problem-detector and kubelets write a heartbeat."""


class ProcessKilled(BaseException):
    """The process was killed while it wrote. The program must not catch this."""


class Call(Struct, frozen=True):
    """One call.

    `what` is the name of the port's method, `node` and `subject` are what it is about, and `number` counts
    from 1. `content` is the argument of a write (a NodeWrite, a Notice, a Pod), or None for a read.
    """

    what: str
    node: str = ""
    subject: str = ""
    number: int = 0
    content: object = None


OnCall = Callable[[Call], None]


class PodRequest(Struct, frozen=True):
    """One request to evict or delete a pod, granted or not.

    `at` is UTC, `verb` evict or delete, `cordoned` whether the node was cordoned at that moment.
    """

    at: datetime
    verb: str
    pod: str
    uid: str
    node: str
    cordoned: bool
    granted: bool
    grace: int | None


class SimulatedApi:
    """ClusterReader, ClusterWriter and Evictor over a simulated cluster.

    `before_write` and `after_write` are called around each write, `before_read` before each read. Each may
    raise a ClusterError or LockLost, as a server or a lock does, or `Killed` to end the process. If
    `after_write` raises, the write still takes effect.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.before_read: OnCall | None = None
        self.before_write: OnCall | None = None
        self.after_write: OnCall | None = None
        self.writes = 0
        """The number of requested writes, including refused ones."""
        self.reads = 0
        self.done: list[Call] = []
        """The writes that took effect, in order."""
        self.pod_requests: list[PodRequest] = []
        self.silent_since: dict[str, datetime] = {}
        """When each node's detector stopped writing heartbeats, by node."""
        self.stale: Mapping[str, Node] | None = None
        """The nodes that a list shows in place of those that there are, as if it was read earlier."""
        self.listed: tuple[Node, ...] = ()
        """What the last list of nodes showed."""
        self._followed: tuple[Wanted, Mapping[str, Node]] | None = None

    # ClusterReader

    def nodes(self, wanted: Wanted) -> tuple[Node, ...]:
        """Every node with the wanted fields, sorted by name."""
        self.begin_read("nodes")
        nodes = self.cluster.nodes if self.stale is None else self.stale
        self.listed = tuple(self._shown(node, wanted) for _, node in sorted(nodes.items()))
        return self.listed

    def look(self, request: LookRequest) -> Look:
        """What a pass begins with. Changes are as a watch shows them that is never late."""
        wanted, before = request.nodes, self._followed
        nodes = {node.name: node for node in self.nodes(wanted)}
        changed = None
        if request.changes:
            self._followed = wanted, nodes
            if before is not None and before[0] == wanted:
                names = nodes.keys() | before[1].keys()
                changed = frozenset(name for name in names if nodes.get(name) != before[1].get(name))
        return with_rest(Look(nodes, changed), request, self)

    def completed(self, nodes: Sequence[Node], wanted: Wanted) -> Sequence[Node]:
        """These nodes: no record is kept elsewhere."""
        del wanted
        return nodes

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """The pods of a node, or of all."""
        del placement
        self.begin_read("pods", node or "")
        return self.cluster.pods_where(lambda pod: node in (None, pod.node))

    def pods_with(self, label: str) -> tuple[Pod, ...]:
        """The pods that have a label of this key."""
        self.begin_read("pods")
        return self.cluster.pods_where(lambda pod: label in pod.labels)

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Every budget."""
        self.begin_read("budgets")
        return tuple(budget for _, budget in sorted(self.cluster.budgets.items()))

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """Every namespace's labels."""
        self.begin_read("namespaces")
        return dict(self.cluster.namespaces)

    def agents(self) -> Agents:
        """The node agents' health."""
        self.begin_read("agents")
        return self.cluster.agents

    def remediator(self) -> Remediator:
        """AKS's remediator-config."""
        self.begin_read("remediator")
        return self.cluster.remediator

    def server_version(self) -> ServerVersion:
        """The version of the API server."""
        self.begin_read("server_version")
        return self.cluster.server_version

    def ledger(self) -> Ledger:
        """Our ConfigMap."""
        self.begin_read("ledger")
        return self.cluster.ledger

    def holds(self) -> tuple[PersonHold, ...]:
        """The holds of many nodes."""
        self.begin_read("ledger")
        return self.cluster.ledger.holds

    def disagreement(self) -> Disagreement | None:
        """How far the API server's clock is from ours."""
        away = -self.cluster.skew
        return Disagreement(away) if abs(away) > CLOCK_TOLERANCE else None

    def cordoned_by_us(self, nodes: Sequence[Node]) -> frozenset[str]:
        """Return the names of those that the program has cordoned."""
        return frozenset(node.name for node in nodes if node.uid in self.cluster.our_cordons)

    def uncordoned_by(self, node: Node) -> str:
        """Return nothing: who applies a field is not simulated."""
        del node
        return ""

    # ClusterWriter

    def patch_node(self, write: NodeWrite) -> WriteAnswer | None:
        """Patch a node, and take the patch back if something essential did not stay, as the client does."""
        stored = self._patched_node(write)
        lost = not_kept(stored, write)
        if lost.isdisjoint(write.essential):
            return WriteAnswer(f"{', '.join(sorted(lost))} did not stay on the node", lost) if lost else None
        back = taken_back(stored, write)
        if back is not None:
            self._patched_node(back)
        raise NotKept(f"{', '.join(sorted(lost))} did not stay on the node", lost)

    def _patched_node(self, write: NodeWrite) -> Node:
        """Return the node after a patch, which names what it expects and no resourceVersion."""
        call = self.begin_write("patch_node", write.node, content=write)
        node = self._node_of(write.node)
        seen = node.without_copies(write.own_prefix)
        if not is_as_seen(seen, write):
            if node.uid == write.uid and shows_intent(seen, write):
                return node
            raise Conflict(f"node {write.node} is not as it was seen", status=409)
        changed = replace(
            node,
            labels=_patched(node.labels, write.labels),
            annotations=_patched(node.annotations, write.bound_annotations),
            unschedulable=node.unschedulable if write.unschedulable is None else write.unschedulable,
            finalizers=write.lists.of_finalizers(node.finalizers),
            taints=write.lists.of_taints(node.taints),
        )
        if self.cluster.admission is not None:
            changed = self.cluster.admission(node, changed)
        self.cluster.put_node(changed)
        if changed.unschedulable and not node.unschedulable:
            self.cluster.our_cordons.add(node.uid)
        cordons = {True: CORDON.name, False: UNCORDON.name, None: RECORD.name}
        what = cordons[write.unschedulable]
        state = changed.labels.get(write.keys.state, "operational")
        self.cluster.note(Actor.US, what, write.node, detail=state)
        self.cluster.settle()
        self.end_write(call)
        return changed

    def patch_conditions(self, write: ConditionsWrite) -> None:
        """Add conditions to a node's status and remove others, by type."""
        call = self.begin_write("patch_conditions", write.node, content=write)
        node = self._node_of(write.node)
        if node.uid != write.uid:
            raise Conflict(f"node {write.node} is another one of that name", status=409)
        have = {old.type: old for old in node.conditions if old.type not in write.gone}
        for condition in write.put:
            former = have.get(condition.type)
            since = condition.transition or (former.transition if former else None)
            have[condition.type] = replace(condition, transition=since)
        self.cluster.put_node(replace(node, conditions=tuple(have.values())))
        self.cluster.note(Actor.US, CONDITIONS.name, write.node)
        self.end_write(call)

    def patch_taint(self, write: TaintWrite) -> None:
        """Add or remove a taint of a node, by its key and effect."""
        call = self.begin_write("patch_taint", write.node, content=write)
        node = self._node_of(write.node)
        if node.uid != write.uid:
            raise NotFound(f"node {write.node} not found", status=404)
        named = (write.taint.key, write.taint.effect)
        others = [taint for taint in node.taints if (taint.key, taint.effect) != named]
        taints = (*others, write.taint) if write.wanted else tuple(others)
        self.cluster.put_node(replace(node, taints=taints))
        self.cluster.note(Actor.US, TAINT.name, write.node)
        self.end_write(call)

    def patch_labels(self, write: LabelsWrite) -> None:
        """Set labels of a node."""
        call = self.begin_write("patch_labels", write.node, content=write)
        node = self._node_of(write.node)
        if node.uid != write.uid:
            raise Conflict(f"node {write.node} is another one of that name", status=409)
        self.cluster.put_node(replace(node, labels={**node.labels, **write.labels}))
        self.cluster.note(Actor.US, LABELS.name, write.node)
        self.end_write(call)

    def write_ledger(self, ledger: Ledger) -> None:
        """Write our ConfigMap; the last start never moves back."""
        call = self.begin_write("write_ledger", content=ledger)
        if self.cluster.ledger_contended:
            raise Conflict("our ConfigMap: another client keeps writing it", status=409)
        self.cluster.ledger = ledger.merged(self.cluster.ledger)
        self.cluster.note(Actor.US, "ledger")
        self.end_write(call)

    # Notifier

    def notify(self, notification: Notification) -> bool:
        """Write an Event, and return whether that is settled; a failure is never raised."""
        node, uid, notice = notification.node, notification.uid, notification.notice
        try:
            call = self.begin_write("notify", node, notice.reason, notice)
            told = bool(notice.once) and any(
                event.uid == uid and (event.notice.reason, event.notice.once) == (notice.reason, notice.once)
                for event in self.cluster.events
            )
            if not told:
                self.cluster.events.append(KubernetesEvent(self.cluster.clock.now(), node, uid, notice))
                self.cluster.note(Actor.US, "notify", node, notice.reason, notice.message)
            self.end_write(call)
        except ClusterError as error:
            self.cluster.note(Actor.US, "notify failed", node, notice.reason, str(error))
            return not error.temporary
        return True

    # Evictor

    def node(self, name: str) -> Node | None:
        """One node as it is now."""
        self.begin_read("node", name)
        found = self.cluster.nodes.get(name)
        return self._shown(found, Wanted(frozenset({"Ready"}), DEFAULT_PREFIX)) if found else None

    def watch_pods(self, node: str) -> SimulatedWatch[PodChange]:
        """List, then watch a node's pods."""
        self.begin_read("watch_pods", node)
        return self.cluster.watch_pods(node)

    def watch_budgets(self, namespace: str = "") -> SimulatedWatch[BudgetChange]:
        """List, then watch the budgets of a namespace, or all."""
        self.begin_read("watch_budgets")
        return self.cluster.watch_budgets(namespace)

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict as pkg/registry/core/pod/storage/eviction.go does."""
        call = self._asked_for("evict", pod, grace)
        found = self._same(pod)
        # canIgnorePDB: a pod that has ended, never started or is terminating needs no budget.
        if not (found.finished or found.phase == "Pending" or found.deleting_until is not None):
            self._ask_budgets(found)
        self._grant()
        self.cluster.note(Actor.US, "evict", found.node, found.key)
        self.cluster.terminate(found.uid, grace)
        self.end_write(call)

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """Delete without regard to budgets."""
        call = self._asked_for("delete", pod, grace)
        found = self._same(pod)
        self._grant()
        self.cluster.note(Actor.US, "delete", found.node, found.key, f"grace {grace}")
        self.cluster.terminate(found.uid, grace)
        self.end_write(call)

    def restart(self, pod: Pod, now: datetime) -> str:
        """Restart the Deployment that owns the pod."""
        del now
        call = self.begin_write("restart", pod.node, pod.key, pod)
        found = self._same(pod)
        key = self.cluster.owner_of(found)
        workload = self.cluster.workloads.get(key)
        if workload is None or workload.kind != "Deployment" or workload.replicas != 1:
            raise Rejected("it is no Deployment of one pod")
        self.cluster.note(Actor.US, "restart", found.node, key)
        self.cluster.roll_out(key)
        self.end_write(call)
        return f"Deployment {key}"

    def attachments(self, node: str, staying: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """The volumes still attached. One that has the name of a claim (`namespace/name`) is bound to it."""
        self.begin_read("attachments", node)
        return tuple(name for name in self.cluster.attached.get(node, ()) if name not in staying)

    def unplaced(self) -> tuple[Pod, ...]:
        """The pods without a node."""
        self.begin_read("unplaced")
        return tuple(pod for _, pod in sorted(self.cluster.pods.items()) if not pod.node)

    def attached(self, staying: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[str, ...]]:
        """The volumes still attached to each of these nodes, but those of claims that stay."""
        return {node: self.attachments(node, claims) for node, claims in staying.items()}

    # Every read calls the first of these, and every write the others.

    def begin_read(self, what: str, node: str = "") -> None:
        """Count a read and call what stands before it, which may raise.

        Simulated clients of features use this, too.
        """
        self.reads += 1
        if self.before_read is not None:
            self.before_read(Call(what, node, number=self.reads))

    def begin_write(self, what: str, node: str = "", subject: str = "", content: object = None) -> Call:
        """Count a write and call what stands before it, which may raise.

        Simulated clients of features use this, too.
        """
        self.writes += 1
        call = Call(what, node, subject, self.writes, content)
        if self.before_write is not None:
            self.before_write(call)
        return call

    def end_write(self, call: Call) -> None:
        """Note that a write took effect, and call what stands after it, which may raise."""
        self.done.append(call)
        if self.after_write is not None:
            self.after_write(call)

    # Inside.

    def _node_of(self, name: str) -> Node:
        node = self.cluster.nodes.get(name)
        if node is None:
            raise NotFound(f"node {name} not found", status=404)
        return node

    def _same(self, pod: Pod) -> Pod:
        found = self.cluster.find_pod(pod.key)
        if found is None:
            raise NotFound(f'pods "{pod.name}" not found', status=404)
        if found.uid != pod.uid:
            raise Conflict(f"the UID in the precondition ({pod.uid}) is not {found.uid}", status=409)
        return found

    def _ask_budgets(self, pod: Pod) -> None:
        covering = [budget for budget in self.cluster.budgets.values() if budget.covers(pod)]
        if len(covering) > 1:
            message = (
                "This pod has more than one PodDisruptionBudget, "
                "which the eviction subresource does not support."
            )
            self.cluster.note(Actor.US, "evict refused", pod.node, pod.key, "two budgets")
            raise Rejected(message, status=500)
        for budget in covering:
            spared = budget.unhealthy_always or (budget.healthy >= budget.desired > 0)
            if budget.allowed > 0 or (not pod.ready and spared):
                continue
            words = (
                f"The disruption budget {budget.name} needs {budget.desired} healthy pods "
                f"and has {budget.healthy} currently"
            )
            self.cluster.note(Actor.US, "evict refused", pod.node, pod.key, budget.key)
            raise TooManyRequests(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                status=429,
                reason="DisruptionBudget",
                causes=(words,),
            )
        for budget in covering:
            if budget.allowed > 0:
                self.cluster.spend(budget.key)

    def _shown(self, node: Node, wanted: Wanted) -> Node:
        """Return the wanted fields of a node, with the heartbeats that a live detector writes."""
        prefix = f"{wanted.annotation_prefix}/"
        shown = replace(
            node,
            labels={key: text for key, text in node.labels.items() if wanted.keeps_label(key)},
            annotations={
                key: text
                for key, text in node.annotations.items()
                if key.startswith(prefix) or key in wanted.annotations
            },
            conditions=tuple(
                self._beating(node.name, condition)
                for condition in node.conditions
                if condition.type in wanted.conditions
            ),
            allocatable=node.allocatable if wanted.capacity else {},
            system_uuid=node.system_uuid if wanted.system_uuid else "",
        )
        return shown.without_copies(wanted.annotation_prefix)

    def _beating(self, name: str, condition: Condition) -> Condition:
        if condition.heartbeat is not None:
            return condition
        now = self.cluster.clock.now()
        beat = now - (now - datetime.min.replace(tzinfo=now.tzinfo)) % HEARTBEAT
        silent = self.silent_since.get(name)
        return replace(condition, heartbeat=min(beat, silent) if silent else beat)

    def _asked_for(self, verb: str, pod: Pod, grace: int | None) -> Call:
        node = self.cluster.nodes.get(pod.node)
        cordoned = node is not None and node.unschedulable
        now = self.cluster.clock.now()
        self.pod_requests.append(
            PodRequest(now, verb, pod.key, pod.uid, pod.node, cordoned, granted=False, grace=grace)
        )
        return self.begin_write(verb, pod.node, pod.key, pod)

    def _grant(self) -> None:
        self.pod_requests[-1] = replace(self.pod_requests[-1], granted=True)


def _patched(pairs: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**pairs, **changes}
    return {key: value for key, value in merged.items() if value is not None}
