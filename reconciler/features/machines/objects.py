"""Machines, their pools and claims as the API server has them: the fields that we read, and their meaning."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from reconciler.kubernetes.wire.shapes import ObjectMeta, OwnerReference
from reconciler.model.machine import MachineRef

# Attributes have the names of the API, so no table of names is needed.
# ruff: noqa: N815

_PAUSED = "cluster.x-k8s.io/paused"
_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
# A MachineDeployment of a ClusterClass: the Cluster says its number, and puts it back.
_TOPOLOGY = "topology.cluster.x-k8s.io/owned"
_OPENSHIFT_ROLE = "machine.openshift.io/cluster-api-machine-role"
_AUTOSCALER = "cluster-api-autoscaler-node-group"
_LONGEST = 200


class _Version(msgspec.Struct):
    version: str = ""


class Group(msgspec.Struct):
    """An API group, with the version that it prefers."""

    preferredVersion: _Version = msgspec.field(default_factory=_Version)


class _NodeRef(msgspec.Struct):
    name: str = ""
    # Cluster API's v1beta2 has the name only.
    uid: str = ""


class _MachineStatus(msgspec.Struct):
    nodeRef: _NodeRef | None = None
    authoritativeAPI: str = ""


class _MachineSpec(msgspec.Struct):
    providerID: str = ""


class MachineObject(msgspec.Struct):
    """A Machine of Cluster API or OpenShift."""

    metadata: ObjectMeta
    spec: _MachineSpec = msgspec.field(default_factory=_MachineSpec)
    status: _MachineStatus = msgspec.field(default_factory=_MachineStatus)


class _PoolSpec(msgspec.Struct):
    replicas: int | None = None


class PoolStatus(msgspec.Struct):
    """How many machines of a MachineSet or MachineDeployment exist, are ready, and are up to date."""

    replicas: int | None = None
    readyReplicas: int | None = None
    # v1beta1 and v1beta2 have two names for the same number.
    updatedReplicas: int | None = None
    upToDateReplicas: int | None = None


class PoolObject(msgspec.Struct):
    """A MachineSet or a MachineDeployment."""

    metadata: ObjectMeta
    spec: _PoolSpec = msgspec.field(default_factory=_PoolSpec)
    status: PoolStatus = msgspec.field(default_factory=PoolStatus)


class _ClaimStatus(msgspec.Struct):
    nodeName: str = ""
    providerID: str = ""


class _ClaimSpec(msgspec.Struct):
    # A duration. Karpenter deletes the machine after it, whatever still runs there.
    terminationGracePeriod: str | None = None


class NodeClaim(msgspec.Struct):
    """A NodeClaim of Karpenter."""

    metadata: ObjectMeta
    spec: _ClaimSpec = msgspec.field(default_factory=_ClaimSpec)
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


def other_machine(listed: str, ref: MachineRef) -> str:
    """Return why the machine with this providerID is not the node's, empty where it is.

    The node's own providerID proves nothing, but a machine of another VM is never replaced for it.
    """
    if not listed:
        return "names no providerID yet"
    if not ref.provider_id:
        return f"is of {short_id(listed)}, and node {ref.node} names no providerID"
    if listed != ref.provider_id:
        return f"is of {short_id(listed)}, but node {ref.node} says that it is {short_id(ref.provider_id)}"
    return ""


def short_id(provider_id: str) -> str:
    """Return a providerID for a message: of a long one the end, which identifies the VM."""
    return provider_id if len(provider_id) <= _LONGEST else f"…{provider_id[-_LONGEST:]}"


def controller(meta: ObjectMeta, group: str) -> tuple[OwnerReference | None, str]:
    """Return the owner of the object, and the owner's kind, which is empty for another API group."""
    for owner in meta.ownerReferences or ():
        if owner.controller:
            return owner, owner.kind if owner.apiVersion.startswith(f"{group}/") else ""
    return None, ""


def is_control_plane(meta: ObjectMeta, kind: str) -> bool:
    """Whether the machine runs a control plane: by its label, or by an owner that is not a MachineSet.

    KubeadmControlPlane and ControlPlaneMachineSet are such owners; an unknown owner counts as one, too.
    """
    labels = meta.labels or {}
    if _CONTROL_PLANE in labels or labels.get(_OPENSHIFT_ROLE) == "master":
        return True
    return kind != "MachineSet" and any(owner.controller for owner in meta.ownerReferences or ())


def is_put_back(meta: ObjectMeta, group: str) -> bool:
    """Whether an autoscaler or a ClusterClass topology sets the pool's number."""
    annotations = meta.annotations or {}
    return _TOPOLOGY in (meta.labels or {}) or any(
        f"{group}/{_AUTOSCALER}-{bound}-size" in annotations for bound in ("min", "max")
    )


def number_of(found: PoolObject) -> int:
    """Return how many machines it should have: one, where it gives no number."""
    return 1 if found.spec.replicas is None else found.spec.replicas


def why_busy(what: str, metas: Sequence[ObjectMeta], status: PoolStatus, authority: str) -> str:
    """Return why the pool can't be scaled now, empty where it can; `metas` are the pool and its parts."""
    if any(_PAUSED in (meta.annotations or {}) for meta in metas):
        return f"{what} is paused"
    # During OpenShift's migration to Cluster API, the object that is not authoritative is only a copy.
    if authority not in ("", "MachineAPI"):
        return f"{what} is controlled by {authority}"
    updated = status.updatedReplicas if status.upToDateReplicas is None else status.upToDateReplicas
    if status.replicas is not None and updated is not None and updated < status.replicas:
        return f"{what} is rolling out a change: {updated} of {status.replicas} machines have it"
    return ""
