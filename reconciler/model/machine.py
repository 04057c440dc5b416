"""What owns the VM behind a node, and can be asked for another one: who replaces what.

A node says itself whose it is, by the labels and annotations that its owner puts on it: Karpenter (AKS's
node auto-provisioning is one), Cluster API, OpenShift's machine API, or a node pool of AKS.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.azure import vm_of
from reconciler.model.node import Node

# Cluster API writes these on the nodes that it makes (api/core/v1beta1/machine_types.go).
CLUSTER_API_MACHINE = "cluster.x-k8s.io/machine"
CLUSTER_API_NAMESPACE = "cluster.x-k8s.io/cluster-namespace"
# OpenShift's machine API writes `namespace/name`.
OPENSHIFT_MACHINE = "machine.openshift.io/machine"

OWNER_KEYS = frozenset({CLUSTER_API_MACHINE, CLUSTER_API_NAMESPACE, OPENSHIFT_MACHINE})
"""The annotations by which a node names its machine."""


class MachineProvider(StrEnum):
    """Who makes machines, in the words of a report."""

    KARPENTER = "Karpenter"
    CLUSTER_API = "Cluster API"
    OPENSHIFT = "OpenShift"
    AKS = "AKS"


@dataclass(frozen=True, slots=True)
class MachineRef:
    """A node's machine as the node itself names it, before anybody is asked about it.

    For Karpenter the name is the node's own, since its NodeClaim is found by the node; for AKS it is the
    machine's in its agent pool, `pool`, which is the node's name as well.
    """

    node: str
    uid: str
    provider: MachineProvider
    name: str
    namespace: str = ""
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """What keeps a number of machines: a MachineSet, a MachineDeployment, an agent pool.

    `wanted` is how many it is to have, `ready` how many it has that are Ready, both None where it keeps no
    number (a NodePool). `revision` is what a change of the number names as seen (a resourceVersion, an
    ETag). `scales` is whether we may raise its number by one: not while an autoscaler does. `busy` says why
    it can't be asked for anything right now, empty where it can.
    """

    kind: str
    name: str
    namespace: str = ""
    wanted: int | None = None
    ready: int | None = None
    revision: str = ""
    scales: bool = False
    busy: str = ""

    def __str__(self) -> str:
        """Return it as people would name it."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine behind a node as its provider shows it now.

    `pool` is what brings a new one once this one goes, None where nothing does. `uid` is the object's own,
    empty for AKS. `deleting` is whether it is on its way out. `control_plane` is whether it carries one.
    With a `problem` nothing more is known of it: it can't be replaced now, and that is why.
    """

    ref: MachineRef
    name: str = ""
    uid: str = ""
    pool: Pool | None = None
    deleting: bool = False
    control_plane: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Raise:
    """Ask a pool for one machine more: for `wanted` in all."""

    node: str
    machine: Machine
    wanted: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Have a machine deleted.

    With `lower` the pool was raised for it before: it is deleted by lowering the pool to that number again,
    this machine first, so that no third one comes. Without, its provider brings a new one by itself.
    """

    node: str
    machine: Machine
    lower: int | None = None


def machine_of(node: Node) -> MachineRef | None:
    """Return the machine behind a node; None where nothing on the node says whose it is."""
    if node.is_karpenter:
        return MachineRef(node.name, node.uid, MachineProvider.KARPENTER, node.name)
    if named := node.annotations.get(OPENSHIFT_MACHINE):
        namespace, _, name = named.rpartition("/")
        return (
            MachineRef(node.name, node.uid, MachineProvider.OPENSHIFT, name, namespace) if namespace else None
        )
    if named := node.annotations.get(CLUSTER_API_MACHINE):
        namespace = node.annotations.get(CLUSTER_API_NAMESPACE, "default")
        return MachineRef(node.name, node.uid, MachineProvider.CLUSTER_API, named, namespace)
    if node.pool and vm_of(node.provider_id) is not None:
        return MachineRef(node.name, node.uid, MachineProvider.AKS, node.name, pool=node.pool)
    return None
