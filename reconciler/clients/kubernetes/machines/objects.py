"""Machines, their pools and claims as the API server has them, reduced to what we read, and what it means."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from reconciler.clients.kubernetes.wire.shapes import ObjectMeta, OwnerReference

# The attributes are spelt as in the API, so that no table of names is needed.
# ruff: noqa: N815

_PAUSED = "cluster.x-k8s.io/paused"
_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
# A MachineDeployment of a ClusterClass: its number is the Cluster's to say, and is put back.
_TOPOLOGY = "topology.cluster.x-k8s.io/owned"
_OPENSHIFT_ROLE = "machine.openshift.io/cluster-api-machine-role"
_AUTOSCALER = "cluster-api-autoscaler-node-group"


class _Version(msgspec.Struct):
    version: str = ""


class Group(msgspec.Struct):
    """An API group: which version it prefers."""

    preferredVersion: _Version = msgspec.field(default_factory=_Version)


class _NodeRef(msgspec.Struct):
    name: str = ""


class _MachineStatus(msgspec.Struct):
    nodeRef: _NodeRef | None = None
    authoritativeAPI: str = ""


class MachineObject(msgspec.Struct):
    """A Machine of Cluster API or OpenShift."""

    metadata: ObjectMeta
    status: _MachineStatus = msgspec.field(default_factory=_MachineStatus)


class _PoolSpec(msgspec.Struct):
    replicas: int | None = None


class PoolStatus(msgspec.Struct):
    """How far a MachineSet or MachineDeployment is."""

    replicas: int | None = None
    readyReplicas: int | None = None
    # v1beta1's and v1beta2's name of the same.
    updatedReplicas: int | None = None
    upToDateReplicas: int | None = None


class PoolObject(msgspec.Struct):
    """A MachineSet or a MachineDeployment."""

    metadata: ObjectMeta
    spec: _PoolSpec = msgspec.field(default_factory=_PoolSpec)
    status: PoolStatus = msgspec.field(default_factory=PoolStatus)


class _ClaimStatus(msgspec.Struct):
    nodeName: str = ""


class NodeClaim(msgspec.Struct):
    """A NodeClaim of Karpenter."""

    metadata: ObjectMeta
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


def controller(meta: ObjectMeta, group: str) -> tuple[OwnerReference | None, str]:
    """Return what owns the object, and its kind, which is empty where it is of another API group."""
    for owner in meta.ownerReferences or ():
        if owner.controller:
            return owner, owner.kind if owner.apiVersion.startswith(f"{group}/") else ""
    return None, ""


def is_control_plane(meta: ObjectMeta, kind: str) -> bool:
    """Whether the machine carries a control plane: by its label, or by an owner that is no MachineSet.

    KubeadmControlPlane and ControlPlaneMachineSet are two; what an owner does that we don't know is its own.
    """
    labels = meta.labels or {}
    if _CONTROL_PLANE in labels or labels.get(_OPENSHIFT_ROLE) == "master":
        return True
    return kind != "MachineSet" and any(owner.controller for owner in meta.ownerReferences or ())


def is_put_back(meta: ObjectMeta, group: str) -> bool:
    """Whether somebody else says the pool's number: an autoscaler, or a ClusterClass' topology."""
    annotations = meta.annotations or {}
    return _TOPOLOGY in (meta.labels or {}) or any(
        f"{group}/{_AUTOSCALER}-{bound}-size" in annotations for bound in ("min", "max")
    )


def number_of(found: PoolObject) -> int:
    """Return how many machines it is to have: one, where it says nothing."""
    return 1 if found.spec.replicas is None else found.spec.replicas


def why_busy(what: str, metas: Sequence[ObjectMeta], status: PoolStatus, authority: str) -> str:
    """Return why the pool is let be for now, empty where it may be asked; `metas` are it and its parts."""
    if any(_PAUSED in (meta.annotations or {}) for meta in metas):
        return f"{what} is paused"
    # OpenShift while it moves over to Cluster API: what isn't in charge is a copy, and put back.
    if authority not in ("", "MachineAPI"):
        return f"{what} is looked after by {authority}"
    updated = status.updatedReplicas if status.upToDateReplicas is None else status.upToDateReplicas
    if status.replicas is not None and updated is not None and updated < status.replicas:
        return f"{what} is rolling out a change: {updated} of {status.replicas} machines have it"
    return ""
