"""A simulated cluster: its objects, and the controllers, scheduler and kubelets that move them.

It has the state that an API server would show. People, the platform and tests call it directly. Our program
uses only `api.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from reconciler.model.moments import shifted
from reconciler.model.node import SPOT_LABEL, Condition, Node, Taint
from reconciler.model.pod import Pod, grace_seconds
from reconciler.model.ports import BudgetGone
from reconciler.model.snapshot import Agents, Ledger, Remediator, ServerVersion
from reconciler.model.values import replace
from reconciler.simulation.clock import Actor, Log, VirtualClock
from reconciler.simulation.store import ObjectStore
from reconciler.simulation.workloads import BudgetSpec, Workload, budget_status


class Controllers(ObjectStore):
    """The controllers, the scheduler and the kubelets, which move the pods."""

    def __init__(self, clock: VirtualClock, log: Log | None = None, *, room: int = 60) -> None:
        """Use this clock. `room` is the number of pods that fit on a node."""
        super().__init__(clock, log)
        self.room = room
        self.budget_lag = timedelta()
        """The delay until the disruption controller counts again after a change."""
        self.bare_pods_stop_after: timedelta | None = None
        """How long a pod without a workload takes to end. None: its grace period."""
        self.finalizers: set[str] = set()
        """The UIDs of pods with a finalizer: a deletion does not remove them."""
        self.workloads: dict[str, Workload] = {}
        self.budget_specs: dict[str, BudgetSpec] = {}
        self._made_by: dict[str, str] = {}
        self._surplus: dict[str, str] = {}
        self._pods_made = 0
        self._count_is_due = False
        self._settling = False
        self._unsettled = False

    def settle(self) -> None:
        """Run controllers and scheduler until nothing changes."""
        if self._settling:
            self._unsettled = True
            return
        self._settling = True
        try:
            self._unsettled = True
            while self._unsettled:
                self._unsettled = False
                for key in sorted(self.workloads):
                    self._reconcile(self.workloads[key])
                self._schedule()
            if self.budget_specs and not self._count_is_due:
                if self.budget_lag:
                    self._count_is_due = True
                    self.clock.after(self.budget_lag, self._count_budgets)
                else:
                    self._count_budgets()
        finally:
            self._settling = False

    def terminate(self, uid: str, grace: int | None, actor: Actor = Actor.CLUSTER) -> None:
        """Delete a pod gracefully; a second deletion can only shorten the first."""
        pod, now = self.pods[uid], self.clock.now()
        seconds = grace_seconds(pod.spec.grace if grace is None else grace)
        until = shifted(now, timedelta(seconds=seconds))
        if not pod.node or seconds == 0:
            # With grace period 0 the API server deletes a pod at once, without its kubelet.
            if uid not in self.finalizers:
                self._remove(pod, actor)
                self.settle()
            return
        if pod.deleting_until is not None and pod.deleting_until <= until:
            return
        self._put(replace(pod, deleting_until=until))
        workload = self._workload_of(pod)
        bare = self.bare_pods_stop_after
        pause = workload.stops_after if workload else timedelta(seconds=seconds) if bare is None else bare
        self.clock.at(min(now + pause, until), lambda: self._stopped(uid))
        self.settle()

    def owner_of(self, pod: Pod) -> str:
        """Return the `namespace/name` of the pod's workload, empty if it has none."""
        return self._made_by.get(pod.uid, "")

    def _reconcile(self, workload: Workload) -> None:
        pods = self._pods_of(workload.key)
        active = [pod for pod in pods if pod.deleting_until is None and not pod.finished]
        match workload.kind:
            case "Deployment":
                # A terminating pod no longer counts: its successor is created at once.
                spare = [self._surplus[pod.uid] for pod in active if pod.uid in self._surplus]
                counted = [pod for pod in active if pod.uid not in spare]
                for _ in range(workload.replicas - len(counted)):
                    self._make(workload)
                for pod in counted[workload.replicas :]:
                    self.terminate(pod.uid, None)
            case "StatefulSet":
                # A name can be used again only when its pod is gone.
                taken = {pod.name for pod in pods}
                for ordinal in range(workload.replicas):
                    if f"{workload.name}-{ordinal}" not in taken:
                        self._make(workload, ordinal)
            case "DaemonSet":
                covered = {pod.node for pod in pods}
                for node in sorted(self.nodes.values(), key=lambda node: node.name):
                    if node.name not in covered and node.pool in (workload.pools or (node.pool,)):
                        self._bind(self._make(workload), node.name)

    def _make(self, workload: Workload, ordinal: int = 0) -> Pod:
        self._pods_made += 1
        pod = replace(workload.pod(self._pods_made, ordinal), created=self.clock.now())
        self._made_by[pod.uid] = workload.key
        self._put(pod)
        return pod

    def _schedule(self) -> None:
        waiting = [
            pod
            for pod in self.pods.values()
            if not pod.node and pod.deleting_until is None and pod.phase == "Pending"
        ]
        for pod in sorted(waiting, key=lambda pod: (-pod.spec.priority, pod.uid)):
            workload = self._workload_of(pod)
            if workload is None:
                continue
            fitting = [node for node in self.nodes.values() if self._fits(workload, node)]
            if fitting:
                self._bind(pod, min(fitting, key=lambda node: self._crowd(workload, node)).name)

    def _fits(self, workload: Workload, node: Node) -> bool:
        if workload.node_name:
            return node.name == workload.node_name
        repelled = any(
            taint.effect in ("NoSchedule", "NoExecute")
            and not (taint.key == SPOT_LABEL and node.pool in workload.pools)
            for taint in node.taints
        )
        wanted = node.pool in (workload.pools or (node.pool,))
        room = sum(pod.node == node.name for pod in self.pods.values()) < self.room
        open_to = workload.tolerates_cordon or not node.unschedulable
        return wanted and room and node.ready and open_to and not repelled

    def _crowd(self, workload: Workload, node: Node) -> tuple[int, int, int, str]:
        """Sort key: the workload's pods are spread over nodes and zones, then the emptiest node wins."""
        siblings = [
            pod.node for pod in self._pods_of(workload.key) if pod.node and pod.deleting_until is None
        ]
        here = siblings.count(node.name)
        zone = sum(name in self.nodes and self.nodes[name].zone == node.zone for name in siblings)
        return (here, zone, sum(pod.node == node.name for pod in self.pods.values()), node.name)

    def _bind(self, pod: Pod, node: str) -> None:
        bound = replace(pod, node=node)
        self._put(bound)
        self._start(bound)

    def _start(self, pod: Pod) -> None:
        workload = self._workload_of(pod)
        pause = workload.starts_after if workload else timedelta()
        self.clock.after(pause, lambda: self._started(pod.uid))

    def _started(self, uid: str) -> None:
        pod = self.pods.get(uid)
        node = self.nodes.get(pod.node) if pod else None
        if pod is None or pod.ready or pod.deleting_until is not None or node is None or not node.ready:
            return
        self._put(replace(pod, phase="Running", ready=True))
        for old, new in list(self._surplus.items()):
            if new == uid:
                del self._surplus[old]
                if old in self.pods:
                    self.terminate(old, None)
        self.settle()

    def _stopped(self, uid: str) -> None:
        """End a pod's processes; only a live kubelet reports it."""
        pod = self.pods.get(uid)
        node = self.nodes.get(pod.node) if pod else None
        if pod is not None and node is not None and node.ready and uid not in self.finalizers:
            self._remove(pod)
            self.settle()

    def _remove(self, pod: Pod, actor: Actor = Actor.CLUSTER) -> None:
        self._made_by.pop(pod.uid, None)
        self._surplus.pop(pod.uid, None)
        super()._remove(pod, actor)

    def _pods_of(self, key: str) -> list[Pod]:
        return [pod for uid, pod in sorted(self.pods.items()) if self._made_by.get(uid) == key]

    def _workload_of(self, pod: Pod) -> Workload | None:
        return self.workloads.get(self._made_by.get(pod.uid, ""))

    def _count_budgets(self) -> None:
        self._count_is_due = False

        def scale(pod: Pod) -> tuple[str, int] | None:
            workload = self._workload_of(pod)
            return (workload.key, workload.replicas) if workload and workload.kind else None

        for key, spec in sorted(self.budget_specs.items()):
            counted = budget_status(spec, self.pods.values(), scale)
            before = self.budgets.get(key)
            if before is None or replace(before, resource_version="") != counted:
                self._put_budget(counted)


class SimulatedCluster(Controllers):
    """All objects of a cluster. Read its attributes freely; change them only through its methods."""

    def __init__(self, clock: VirtualClock, log: Log | None = None, *, room: int = 60) -> None:
        """Use this clock. `room` is the number of pods that fit on a node."""
        super().__init__(clock, log, room=room)
        self.ledger = Ledger()
        self.ledger_contended = False
        """Whether another client keeps writing our ConfigMap, so that each of our writes conflicts."""
        self.admission: Callable[[Node, Node], Node] | None = None
        """Changes what the program writes on a node (as it was, as it is to be), or raises why it may not."""
        self.attached: dict[str, tuple[str, ...]] = {}
        self.agents = Agents(installed=True)
        self.remediator = Remediator()
        self.server_version = ServerVersion("v1.33.2")
        self.skew = timedelta()
        self._nodes_made = 0

    def add_node(self, node: Node) -> Node:
        """Add a node; it is Ready where its conditions don't say otherwise.

        A node without a UID gets one, and a boot ID. A node with a UID is stored unchanged.
        """
        self._nodes_made += 1
        now = self.clock.now()
        conditions = node.conditions
        if node.condition("Ready") is None:
            # It has been Ready for a long time, so no settle time applies to it.
            ready = Condition("Ready", "True", "KubeletReady", transition=now - timedelta(days=3))
            conditions = (*conditions, ready)
        added = replace(node, conditions=conditions)
        if not node.uid:
            number = f"{self._nodes_made:06d}"
            added = replace(added, uid=f"node-{number}", boot_id=f"boot-{number}-1")
        self.put_node(added)
        self.note(Actor.CLUSTER, "node joined", node.name)
        self.settle()
        return self.nodes[node.name]

    def delete_node(self, name: str, actor: Actor = Actor.SOMEBODY, *, collect: bool = True) -> None:
        """Remove a node. With `collect`, its pods are garbage-collected at once, else never."""
        del self.nodes[name]
        self.attached.pop(name, None)
        self.note(actor, "node gone", name)
        for pod in self.pods_on(name) if collect else ():
            self._remove(pod)
        self.settle()

    def replace_node(self, node: Node, actor: Actor = Actor.SOMEBODY) -> Node:
        """Replace the node of the same name, and remove the old node's pods."""
        if node.name in self.nodes:
            self.delete_node(node.name, actor)
        return self.add_node(node)

    def recreate_node(self, name: str) -> Node:
        """Delete a node and create it again with its name, another UID, no cordon and none of our keys."""
        old = self.nodes[name]
        self.delete_node(name)
        # A new VM registers only with the labels of its pool.
        labels = {key: value for key, value in old.labels.items() if not key.endswith("/state")}
        return self.add_node(Node(name, "", "", labels=labels, provider_id=old.provider_id))

    def cordon(self, name: str, *, on: bool = True) -> None:
        """Cordon or uncordon a node, as a person does; the taint of the cordon has its time."""
        since = self.clock.now() if on else None
        self.put_node(replace(self.nodes[name], unschedulable=on, tainted_since=since))
        self.note(Actor.SOMEBODY, "cordons" if on else "uncordons", name)
        self.settle()

    def annotate(self, name: str, key: str, value: str | None) -> None:
        """Set or remove an annotation of a node, as a person does; log nothing if it does not change."""
        node = self.nodes[name]
        if node.annotations.get(key) != value:
            self.put_node(replace(node, annotations=_with(node.annotations, key, value)))

    def label(self, name: str, key: str, value: str | None) -> None:
        """Set or remove a label of a node, as a person does."""
        node = self.nodes[name]
        self.put_node(replace(node, labels=_with(node.labels, key, value)))
        self.settle()

    def taint(self, name: str, taints: Iterable[Taint]) -> None:
        """Set the taints of a node, as a person does."""
        self.put_node(replace(self.nodes[name], taints=tuple(taints)))
        self.settle()

    def set_condition(self, name: str, condition: Condition) -> None:
        """Set a condition, as a kubelet or detector does. If the status changes, `transition` becomes now."""
        node = self.nodes[name]
        before = node.condition(condition.type)
        if before is None or before.status != condition.status:
            condition = replace(condition, transition=self.clock.now())
        else:
            condition = replace(condition, transition=before.transition)
        if condition != before:
            others = tuple(one for one in node.conditions if one.type != condition.type)
            self.put_node(replace(node, conditions=(*others, condition)))

    def drop_condition(self, name: str, condition_type: str) -> None:
        """Remove a condition, as if its detector were not installed."""
        node = self.nodes[name]
        kept = tuple(condition for condition in node.conditions if condition.type != condition_type)
        self.put_node(replace(node, conditions=kept))

    def node_down(self, name: str, because: str = "") -> None:
        """Stop the VM: the node and its pods are not Ready, and its kubelet ends no pod."""
        self.set_condition(name, Condition("Ready", "False", "KubeletNotReady", because))
        for pod in self.pods_on(name):
            self._put(replace(pod, ready=False))
        self.note(Actor.CLUSTER, "node not ready", name, detail=because)
        self.settle()

    def node_up(self, name: str, *, booted: bool = True) -> None:
        """Start the VM again: its pods start, and terminating pods end."""
        node = self.nodes[name]
        if booted:
            head, _, count = node.boot_id.rpartition("-")
            self.put_node(replace(node, boot_id=f"{head}-{int(count) + 1}"))
        self.set_condition(name, Condition("Ready", "True", "KubeletReady"))
        for pod in self.pods_on(name):
            if pod.deleting_until is not None:
                self._remove(pod)
            else:
                self._start(pod)
        self.note(Actor.CLUSTER, "node ready", name)
        self.settle()

    def add_workload(self, workload: Workload) -> None:
        """Create a workload, and its pods."""
        self.namespaces.setdefault(workload.namespace, {"kubernetes.io/metadata.name": workload.namespace})
        self.workloads[workload.key] = workload
        if not workload.kind:
            for ordinal in range(workload.replicas):
                self._make(workload, ordinal)
        self.settle()

    def scale(self, key: str, replicas: int) -> None:
        """Scale a workload, as a person does."""
        self.workloads[key] = replace(self.workloads[key], replicas=replicas)
        self.note(Actor.SOMEBODY, "scales", subject=key, detail=str(replicas))
        self.settle()

    def roll_out(self, key: str) -> None:
        """Roll out a workload of one pod: the new pod is up before the old one ends."""
        old = next(pod for pod in self._pods_of(key) if pod.deleting_until is None)
        self._surplus[old.uid] = self._make(self.workloads[key]).uid
        self.settle()

    def adopt(self, workload: Workload, *pods: Pod) -> None:
        """Create a workload for pods that exist, or change a workload and add these pods to it."""
        for pod in pods:
            self._made_by[pod.uid] = workload.key
            self._put(pod)
        self.add_workload(workload)

    def add_pod(self, pod: Pod) -> None:
        """Add a pod without a workload, unchanged, or update the pod with its UID."""
        self._put(pod)
        self.settle()

    def drop_pod(self, uid: str) -> None:
        """Remove a pod at once, as after a deletion with grace period 0."""
        self._remove(self.pods[uid])
        self.settle()

    def clear_node(self, node: str, *pods: Pod) -> None:
        """Replace all pods of a node at once."""
        for pod in self.pods_on(node):
            self._remove(pod)
        for pod in pods:
            self._put(pod)
        self.settle()

    def add_budget(self, spec: BudgetSpec) -> None:
        """Create or change a PodDisruptionBudget; its status is up to date at once."""
        self.budget_specs[spec.key] = spec
        self.settle()
        self._count_budgets()

    def spend(self, key: str) -> None:
        """Use one of a budget's allowed disruptions, as the API server does when it grants an eviction."""
        # Without a lag the following count is the same, and no one sees the state in between.
        if self.budget_lag:
            budget = self.budgets[key]
            self._put_budget(replace(budget, allowed=budget.allowed - 1))

    def drop_budget(self, key: str) -> None:
        """Delete a PodDisruptionBudget, as a person does."""
        del self.budget_specs[key]
        del self.budgets[key]
        for watch in list(self._watches.of_budgets):
            watch.push(BudgetGone(key))


def _with(pairs: Mapping[str, str], key: str, value: str | None) -> dict[str, str]:
    changed = {name: text for name, text in pairs.items() if name != key}
    return changed if value is None else {**changed, key: value}
