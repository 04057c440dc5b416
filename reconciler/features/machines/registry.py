"""Every machine provider. To add one, add its line here and its client in `providers.py`."""

from __future__ import annotations

from reconciler.features.machines.aks import AKS
from reconciler.features.machines.cluster_api import CLUSTER_API
from reconciler.features.machines.karpenter import KARPENTER
from reconciler.features.machines.openshift import OPENSHIFT
from reconciler.model.machine import MachineRef
from reconciler.model.node import Node

# The first provider that knows the node owns its machine. AKS is last, because a node of another provider
# in Azure may look like one of an agent pool.
PROVIDERS = (KARPENTER, OPENSHIFT, CLUSTER_API, AKS)

ANNOTATIONS = frozenset().union(*(provider.annotations for provider in PROVIDERS))
"""The annotations in which a node names its machine."""


def machine_of(node: Node) -> MachineRef | None:
    """Return the machine of a node; None if no provider knows the node."""
    return next((ref for one in PROVIDERS if (ref := one.ref_of(node)) is not None), None)
