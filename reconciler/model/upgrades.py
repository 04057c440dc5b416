"""Upgrades of node pools by AKS, which drain one node after another."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from reconciler.model.node import Node
from reconciler.model.problems import Faults


def upgraded_pools(nodes: Iterable[Node], faults: Faults) -> frozenset[str]:
    """Return the agent pools with a node that AKS upgrades now.

    A node whose data ends in an error is one of `faults`, and its pool counts as not upgraded.
    """
    what = "whether AKS upgrades it is not known"
    return frozenset(faults.of(node.name, what, partial(_pool_in_upgrade, node), "") for node in nodes) - {""}


def upgrade_on(node: Node, pools: Collection[str]) -> str:
    """Return in words what AKS upgrades that concerns the node, empty if nothing; `pools` are in upgrades."""
    pool = node.agent_pool
    return upgrade_of(pool) if node.in_upgrade or pool in pools else ""


def upgrade_of(pool: str) -> str:
    """Return in words that AKS upgrades this pool, or a node without a pool."""
    return f"AKS upgrades pool {pool}" if pool else "AKS upgrades the node"


def _pool_in_upgrade(node: Node) -> str:
    return node.agent_pool if node.in_upgrade else ""
