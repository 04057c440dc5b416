"""Whose machine a node has: the node itself says it, without a request.

To add a provider, add how a node shows it and its line in PROVIDERS, and its client in `process.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.features.machines.reading import read_machines
from reconciler.features.machines.replacing import NAME, REPLACING, OneAtATime
from reconciler.model.machine import (
    AKS,
    CLUSTER_API,
    CLUSTER_API_MACHINE,
    CLUSTER_API_NAMESPACE,
    KARPENTER,
    OPENSHIFT,
    OPENSHIFT_MACHINE,
    MachineRef,
    vm_of,
)
from reconciler.model.node import Node
from reconciler.passes.plugin import Deciding, Feature, Wants
from reconciler.settings.schema import Settings


class MachineProvider(Struct, frozen=True):
    """One provider. Reports show `name`, and its client has it.

    `ref_of` returns the machine of a node, None if that is not this provider's. `annotations` are the keys
    that it reads on a node.
    """

    name: str
    ref_of: Callable[[Node], MachineRef | None]
    annotations: frozenset[str] = frozenset()


def _karpenter(node: Node) -> MachineRef | None:
    """Return the NodeClaim, also of AKS node auto-provisioning. The client finds it by the node's name."""
    return _ref(node, KARPENTER, node.name) if node.is_karpenter else None


def _openshift(node: Node) -> MachineRef | None:
    """Return the Machine that an annotation names as `namespace/name`; the namespace may be missing."""
    if not (named := node.annotations.get(OPENSHIFT_MACHINE)):
        return None
    namespace, _, name = named.rpartition("/")
    return _ref(node, OPENSHIFT, name, namespace)


def _cluster_api(node: Node) -> MachineRef | None:
    """Return the Machine that annotations name (api/core/v1beta1/machine_types.go)."""
    if not (name := node.annotations.get(CLUSTER_API_MACHINE)):
        return None
    return _ref(node, CLUSTER_API, name, node.annotations.get(CLUSTER_API_NAMESPACE, "default"))


def _aks(node: Node) -> MachineRef | None:
    """Return the machine in the agent pool that a label names; the machine has the node's name."""
    if not node.agent_pool or vm_of(node.provider_id) is None:
        return None
    return _ref(node, AKS, node.name, pool=node.agent_pool)


def _ref(node: Node, provider: str, name: str, namespace: str = "", pool: str = "") -> MachineRef:
    return MachineRef(node.name, node.uid, provider, name, namespace, pool, node.provider_id)


# The first provider that knows the node owns its machine. AKS is last, because a node of another provider
# in Azure may look like one of an agent pool.
PROVIDERS = (
    MachineProvider(KARPENTER, _karpenter),
    MachineProvider(OPENSHIFT, _openshift, frozenset({OPENSHIFT_MACHINE})),
    MachineProvider(CLUSTER_API, _cluster_api, frozenset({CLUSTER_API_MACHINE, CLUSTER_API_NAMESPACE})),
    MachineProvider(AKS, _aks),
)


def machine_of(node: Node) -> MachineRef | None:
    """Return the machine of a node; None if no provider knows the node."""
    return next((ref for provider in PROVIDERS if (ref := provider.ref_of(node)) is not None), None)


def _reads(settings: Settings) -> Wants:
    """Return the annotations in which a node names its machine.

    A case that has started to replace its machine continues, even if the settings have changed.
    """
    del settings
    return Wants(annotations=frozenset().union(*(provider.annotations for provider in PROVIDERS)))


FEATURE = Feature(
    NAME,
    offers=REPLACING,
    reads=_reads,
    machine_of=lambda node, _: machine_of(node),
    machines=read_machines,
    decide=Deciding(OneAtATime),
)
