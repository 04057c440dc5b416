"""Cluster API: annotations on the node name its Machine (api/core/v1beta1/machine_types.go)."""

from __future__ import annotations

from reconciler.features.machines.provider import MachineProvider
from reconciler.model.machine import MachineRef
from reconciler.model.node import Node

NAME = "Cluster API"
MACHINE = "cluster.x-k8s.io/machine"
NAMESPACE = "cluster.x-k8s.io/cluster-namespace"


def ref_of(node: Node) -> MachineRef | None:
    """Return the node's Machine; its namespace is `default` if the node names none."""
    if not (name := node.annotations.get(MACHINE)):
        return None
    namespace = node.annotations.get(NAMESPACE, "default")
    return MachineRef(node.name, node.uid, NAME, name, namespace, provider_id=node.provider_id)


CLUSTER_API = MachineProvider(NAME, ref_of, frozenset({MACHINE, NAMESPACE}))
