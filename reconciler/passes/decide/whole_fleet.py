"""All nodes of the cluster, reduced to what views of the whole fleet show."""

from __future__ import annotations

from functools import partial
from operator import attrgetter

from reconciler.model.fleet_node import FleetNode
from reconciler.model.node import Node
from reconciler.model.problems import guarded
from reconciler.model.snapshot import Snapshot
from reconciler.profiles.budget import pool_of
from reconciler.settings.schema import Settings


def fleet_nodes(snapshot: Snapshot, settings: Settings) -> tuple[FleetNode, ...]:
    """Return every node of the snapshot by name; one that breaks the program is not managed."""
    return tuple(
        guarded(f"node {node.name} can't be shown", partial(_shown, node, settings), None)[0] or _broken(node)
        for node in sorted(snapshot.nodes, key=attrgetter("name"))
    )


def _shown(node: Node, settings: Settings) -> FleetNode:
    return FleetNode(node.name, node.zone, pool_of(node), settings.manages(node.labels), node.out_of_service)


def _broken(node: Node) -> FleetNode:
    return FleetNode(node.name, managed=False, closed="an error in this program, see its log")
