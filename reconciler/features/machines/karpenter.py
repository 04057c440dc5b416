"""Karpenter, and with it AKS node auto-provisioning: a label on the node names its NodePool."""

from __future__ import annotations

from reconciler.features.machines.provider import MachineProvider
from reconciler.model import machine
from reconciler.model.machine import MachineRef
from reconciler.model.node import Node

NAME = machine.KARPENTER


def ref_of(node: Node) -> MachineRef | None:
    """Return the node's NodeClaim. Its name is not on the node: the client finds it by the node's name."""
    if not node.is_karpenter:
        return None
    return MachineRef(node.name, node.uid, NAME, node.name, provider_id=node.provider_id)


KARPENTER = MachineProvider(NAME, ref_of)
