"""AKS's agent pools: a label on the node names its pool, and its provider ID names a VM of Azure."""

from __future__ import annotations

from reconciler.features.machines.provider import MachineProvider
from reconciler.model import machine
from reconciler.model.machine import MachineRef, vm_of
from reconciler.model.node import Node

NAME = machine.AKS


def ref_of(node: Node) -> MachineRef | None:
    """Return the node's machine in its agent pool; the machine has the node's name."""
    if not node.agent_pool or vm_of(node.provider_id) is None:
        return None
    return MachineRef(
        node.name, node.uid, NAME, node.name, pool=node.agent_pool, provider_id=node.provider_id
    )


AKS = MachineProvider(NAME, ref_of)
