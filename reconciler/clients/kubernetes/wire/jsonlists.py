"""Nodes and pods from JSON, for servers and proxies that don't speak protobuf, and for single objects.

The same values come out as from protobuf. Only the fields that we read are named, so that the decoder
skips the others. `null` and absent are one: Go writes both for an empty list or map.
"""

from __future__ import annotations

from datetime import UTC, datetime
from sys import intern
from typing import TypeVar

import msgspec

from reconciler.clients.kubernetes.wire.reducing import interned
from reconciler.errors import Rejected
from reconciler.model.node import Condition, Node, Taint, Wanted
from reconciler.model.pod import Owner, Placement, Pod, Toleration
from reconciler.model.selector import Requirement

# The attributes are spelt as in the API, so that no table of names is needed.
# ruff: noqa: N815

Quantities = dict[str, str | int | float]


class ListMeta(msgspec.Struct):
    """metav1.ListMeta; `next` is its `continue`."""

    resourceVersion: str = ""
    next: str = msgspec.field(name="continue", default="")


class OwnerReference(msgspec.Struct):
    """metav1.OwnerReference."""

    kind: str = ""
    name: str = ""
    apiVersion: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(msgspec.Struct):
    """metav1.ObjectMeta."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    creationTimestamp: datetime | None = None
    deletionTimestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[OwnerReference] | None = None


class NodeTaint(msgspec.Struct):
    """core/v1 Taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(msgspec.Struct):
    """core/v1 NodeSpec."""

    providerID: str = ""
    unschedulable: bool | None = None
    taints: list[NodeTaint] | None = None


class NodeCondition(msgspec.Struct):
    """core/v1 NodeCondition."""

    type: str = ""
    status: str = ""
    lastHeartbeatTime: datetime | None = None
    lastTransitionTime: datetime | None = None
    reason: str = ""
    message: str = ""


class NodeSystemInfo(msgspec.Struct):
    """core/v1 NodeSystemInfo."""

    bootID: str = ""


class NodeStatus(msgspec.Struct):
    """core/v1 NodeStatus."""

    allocatable: Quantities | None = None
    conditions: list[NodeCondition] | None = None
    nodeInfo: NodeSystemInfo | None = None


class NodeObject(msgspec.Struct):
    """core/v1 Node."""

    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class ClaimVolume(msgspec.Struct):
    """core/v1 PersistentVolumeClaimVolumeSource."""

    claimName: str = ""


class Empty(msgspec.Struct):
    """An object of which only matters that it is there."""


class Volume(msgspec.Struct):
    """core/v1 Volume."""

    emptyDir: Empty | None = None
    persistentVolumeClaim: ClaimVolume | None = None


class Resources(msgspec.Struct):
    """core/v1 ResourceRequirements."""

    requests: Quantities | None = None


class Container(msgspec.Struct):
    """core/v1 Container."""

    resources: Resources | None = None
    restartPolicy: str = ""


class Expression(msgspec.Struct):
    """core/v1 NodeSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Term(msgspec.Struct):
    """core/v1 NodeSelectorTerm."""

    matchExpressions: list[Expression] | None = None
    matchFields: list[Expression] | None = None


class Terms(msgspec.Struct):
    """core/v1 NodeSelector."""

    nodeSelectorTerms: list[Term] | None = None


class NodeAffinity(msgspec.Struct):
    """core/v1 NodeAffinity."""

    requiredDuringSchedulingIgnoredDuringExecution: Terms | None = None


class Affinity(msgspec.Struct):
    """core/v1 Affinity."""

    nodeAffinity: NodeAffinity | None = None
    podAffinity: Empty | None = None
    podAntiAffinity: Empty | None = None


class PodToleration(msgspec.Struct):
    """core/v1 Toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodSpec(msgspec.Struct):
    """core/v1 PodSpec."""

    volumes: list[Volume] | None = None
    containers: list[Container] | None = None
    initContainers: list[Container] | None = None
    terminationGracePeriodSeconds: int | None = None
    nodeSelector: dict[str, str] | None = None
    nodeName: str = ""
    affinity: Affinity | None = None
    tolerations: list[PodToleration] | None = None
    priorityClassName: str = ""
    priority: int | None = None
    overhead: Quantities | None = None
    topologySpreadConstraints: list[Empty] | None = None


class PodCondition(msgspec.Struct):
    """core/v1 PodCondition."""

    type: str = ""
    status: str = ""


class PodStatus(msgspec.Struct):
    """core/v1 PodStatus."""

    phase: str = ""
    conditions: list[PodCondition] | None = None


class PodObject(msgspec.Struct):
    """core/v1 Pod."""

    metadata: ObjectMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class NodeList(msgspec.Struct):
    """core/v1 NodeList."""

    kind: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[NodeObject] | None = None


class PodList(msgspec.Struct):
    """core/v1 PodList."""

    kind: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[PodObject] | None = None


Kind = TypeVar("Kind")


def decode(kind: type[Kind], body: bytes) -> Kind:
    """Decode JSON into a Struct; Rejected when it is no JSON or of another shape."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Rejected(f"the server's JSON can't be read: {error}") from error


def to_node(found: NodeObject, wanted: Wanted) -> Node:
    """Reduce a node to the parts that are wanted."""
    meta, spec, status = found.metadata, found.spec, found.status
    prefix = f"{wanted.annotation_prefix.rstrip('/')}/"
    return Node(
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        labels=interned(
            {key: value for key, value in (meta.labels or {}).items() if wanted.keeps_label(key)}
        ),
        annotations={
            key: value
            for key, value in (meta.annotations or {}).items()
            if key.startswith(prefix) or key in wanted.annotations
        },
        provider_id=spec.providerID,
        unschedulable=bool(spec.unschedulable),
        taints=tuple(
            Taint(intern(taint.key), intern(taint.value), intern(taint.effect)) for taint in spec.taints or ()
        ),
        conditions=tuple(
            Condition(
                type=intern(condition.type),
                status=intern(condition.status),
                reason=intern(condition.reason),
                message=intern(condition.message),
                heartbeat=_moment(condition.lastHeartbeatTime),
                transition=_moment(condition.lastTransitionTime),
            )
            for condition in status.conditions or ()
            if condition.type in wanted.conditions
        ),
        boot_id=status.nodeInfo.bootID if status.nodeInfo else "",
        allocatable=_quantities(status.allocatable) if wanted.capacity else {},
    )


def to_pod(found: PodObject, *, placement: bool) -> Pod:
    """Reduce a pod, with its placement where that is asked for."""
    meta, spec, status = found.metadata, found.spec, found.status
    volumes = spec.volumes or ()
    grace = spec.terminationGracePeriodSeconds
    return Pod(
        namespace=intern(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        node=intern(spec.nodeName),
        labels=interned(meta.labels or {}),
        annotations=meta.annotations or {},
        owner=_owner(meta),
        phase=intern(status.phase),
        ready=any(one.type == "Ready" and one.status == "True" for one in status.conditions or ()),
        priority=spec.priority or 0,
        priority_class=intern(spec.priorityClassName),
        grace=30 if grace is None else grace,
        deleting_until=_moment(meta.deletionTimestamp),
        empty_dir=any(volume.emptyDir is not None for volume in volumes),
        claims=tuple(
            volume.persistentVolumeClaim.claimName
            for volume in volumes
            if volume.persistentVolumeClaim is not None
        ),
        resource_version=meta.resourceVersion,
        placement=_placement(spec) if placement else None,
    )


def _moment(time: datetime | None) -> datetime | None:
    return time.astimezone(UTC).replace(microsecond=0) if time is not None else None


def _quantities(quantities: Quantities | None) -> dict[str, str]:
    return {intern(name): str(quantity) for name, quantity in (quantities or {}).items()}


def _owner(meta: ObjectMeta) -> Owner | None:
    for reference in meta.ownerReferences or ():
        if reference.controller:
            return Owner(intern(reference.kind), reference.name, intern(reference.apiVersion), reference.uid)
    return None


def _placement(spec: PodSpec) -> Placement:
    affinity = spec.affinity or Affinity()
    node_affinity = affinity.nodeAffinity or NodeAffinity()
    required = node_affinity.requiredDuringSchedulingIgnoredDuringExecution or Terms()
    # An init container that restarts always is a sidecar, and keeps its share while the pod runs.
    running = [
        *(spec.containers or ()),
        *(one for one in spec.initContainers or () if one.restartPolicy == "Always"),
    ]
    requests = [one.resources.requests if one.resources else None for one in running]
    return Placement(
        requests=tuple(_quantities(request) for request in (*requests, spec.overhead) if request),
        node_selector=interned(spec.nodeSelector or {}),
        affinity=tuple(
            tuple(
                Requirement(intern(one.key), intern(one.operator), tuple(one.values or ()))
                for one in (*(term.matchExpressions or ()), *(term.matchFields or ()))
            )
            for term in required.nodeSelectorTerms or ()
        ),
        tolerations=tuple(
            Toleration(intern(one.key), intern(one.operator or "Equal"), one.value, intern(one.effect))
            for one in spec.tolerations or ()
        ),
        topology=bool(affinity.podAffinity or affinity.podAntiAffinity or spec.topologySpreadConstraints),
    )
