"""Preview: what each planned drain would do to its pods, before anything moves."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial

from reconciler.drain.prospect import preview_safely
from reconciler.drain.refusal import with_unplaced
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.pod import Pod
from reconciler.model.ports import ClusterReader
from reconciler.model.problems import BUDGETS, NAMESPACES, PODS, Gaps
from reconciler.model.snapshot import Snapshot
from reconciler.model.values import replace
from reconciler.passes.observe import RULES


def preview(plan: Plan, snapshot: Snapshot, now: datetime) -> Plan:
    """Return the plan with a preview (pods, blockers and room) for every node that will be drained.

    `snapshot` has the pods of the whole cluster, the budgets, and what decides where else a pod may run.
    Without the pods there is no preview, and the plan says so.
    """
    unseen = snapshot.problems.refused
    plan = replace(plan, unseen=snapshot.problems.unseen)
    if PODS in unseen:
        return plan
    unknown = tuple(unseen[what] for what in (BUDGETS, NAMESPACES) if what in unseen)
    going = {node.node for node in plan.nodes if node.todo.drain is not None}
    if not going:
        return plan
    # The pods of all drained nodes need room on the remaining nodes; cordoned nodes offer none.
    staying = tuple(node for node in snapshot.nodes if node.name not in going and not node.unschedulable)
    pods = tuple(pod for found in snapshot.pods.values() for pod in found)

    def with_preview(node: NodePlan) -> NodePlan:
        if node.todo.drain is None:
            return node
        # The order was made before the namespaces were read.
        order = replace(node.todo.drain, namespaces=snapshot.for_settings.namespaces)
        seen = replace(preview_safely(order, staying, pods, snapshot.budgets, now), unknown=unknown)
        return replace(node, draining=replace(node.draining, preview=seen))

    return replace(plan, nodes=tuple(with_preview(node) for node in plan.nodes))


def add_pods(snapshot: Snapshot, reader: ClusterReader, names: Iterable[str]) -> Snapshot:
    """Return the snapshot with everything that a preview of these nodes' drains needs.

    The pods of the whole cluster are read once, with what decides where else they could run. What we may not
    read is in the problems.
    """
    chosen = set(names)
    if not chosen:
        return snapshot
    gaps = Gaps(rehearsed=True, unseen=snapshot.problems.refused)
    pods: dict[str, list[Pod]] = {node.name: [] for node in snapshot.nodes}
    listed = gaps.read(PODS, partial(reader.pods, placement=True), "no drain has a preview")
    for pod in listed or ():
        pods.setdefault(pod.node, []).append(pod)
    budgets = gaps.read(BUDGETS, reader.budgets, "the evictions that they refuse are not known")
    namespaces = gaps.read(NAMESPACES, reader.namespaces, RULES)
    return replace(
        snapshot,
        pods={name: tuple(found) for name, found in pods.items()} if listed is not None else snapshot.pods,
        budgets=with_unplaced(budgets or (), listed or ()),
        for_settings=replace(snapshot.for_settings, namespaces=namespaces or {}),
        problems=replace(snapshot.problems, unseen=tuple(gaps.unseen.values())),
    )
