"""Small worlds for the tests of the simulation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.selector import LabelSelector
from reconciler.model.writes import NodeWrite, node_write
from reconciler.simulation.platform import SimulatedPool
from reconciler.simulation.workloads import BudgetSpec, Workload
from reconciler.simulation.world import World

START = datetime(2026, 12, 2, 7, 0, tzinfo=UTC)
WEB = SimulatedPool("web")
PREFIX = "node-maintenance.dev"


def world(nodes: int = 3, *workloads: Workload, budgets: tuple[BudgetSpec, ...] = ()) -> World:
    """Return a world of so many nodes, a minute old, so that every pod is ready."""
    made = World(START)
    for instance in range(nodes):
        made.cluster.add_node(WEB.node(instance))
    for workload in workloads:
        made.cluster.add_workload(workload)
    for budget in budgets:
        made.cluster.add_budget(budget)
    made.advance(timedelta(minutes=1))
    return made


def web(replicas: int = 3) -> Workload:
    """Return a Deployment."""
    return Workload("shop", "web", replicas=replicas)


def budget(**limit: int | str) -> BudgetSpec:
    """Return a budget of that Deployment."""
    return BudgetSpec("shop", "web", LabelSelector.of({"app": "web"}), **limit)  # type: ignore[arg-type]  # one of two


def name(instance: int) -> str:
    """Return a node's name."""
    return WEB.node(instance).name


def pods_of(there: World, app: str) -> list[Pod]:
    """Return an app's pods, by UID."""
    return [pod for _, pod in sorted(there.cluster.pods.items()) if pod.labels["app"] == app]


def cordoning(node: Node, *, on: bool = True) -> NodeWrite:
    """Return a write that cordons a node as it is now, or uncordons it."""
    return node_write(node, PREFIX, unschedulable=on)
