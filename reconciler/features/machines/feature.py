"""Every machine provider. To add one, add its line here and its client in `providers.py`."""

from __future__ import annotations

from reconciler.features.machines.aks import AKS
from reconciler.features.machines.cluster_api import CLUSTER_API
from reconciler.features.machines.karpenter import KARPENTER
from reconciler.features.machines.openshift import OPENSHIFT
from reconciler.model.machine import MachineRef
from reconciler.model.node import Node
from reconciler.passes.plugin import Feature, Wants
from reconciler.settings.schema import Settings

# The first provider that knows the node owns its machine. AKS is last, because a node of another provider
# in Azure may look like one of an agent pool.
PROVIDERS = (KARPENTER, OPENSHIFT, CLUSTER_API, AKS)


def machine_of(node: Node) -> MachineRef | None:
    """Return the machine of a node; None if no provider knows the node."""
    return next((ref for one in PROVIDERS if (ref := one.ref_of(node)) is not None), None)


def _reads(settings: Settings) -> Wants:
    """Return the annotations in which a node names its machine.

    A case that has started to replace its machine continues, even if the settings have changed.
    """
    del settings
    return Wants(annotations=frozenset().union(*(provider.annotations for provider in PROVIDERS)))


FEATURE = Feature("machines", reads=_reads, machine_of=machine_of)
