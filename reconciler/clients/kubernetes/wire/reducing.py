"""From a decoded node or pod, JSON or protobuf, to our own values: a few fields stay, the rest is dropped.

Both decoders give objects with the attributes of shapes.py; the types here are those of JSON, because the
classes of protobuf messages are made at run time. In a message an absent list is empty and an absent object
is a default one; in JSON both are None. `or ()` and `HasField` read both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from sys import intern
from typing import Any

from reconciler.clients.kubernetes.wire import shapes
from reconciler.model import limits
from reconciler.model.moments import from_text
from reconciler.model.node import Condition, Node, Taint, Wanted
from reconciler.model.pod import Owner, Placement, Pod, Toleration, grace_seconds
from reconciler.model.selector import Requirement


@dataclass(frozen=True, slots=True)
class Leaves:
    """What the two formats encode differently: a time, None if there is none, and a quantity.

    A time that can't be read is `limits.UNREADABLE`, never an exception: it is one object's problem.
    """

    moment: Callable[[Any], datetime | None]
    quantity: Callable[[Any], str]


def _moment_of_message(time: Any) -> datetime | None:
    # Zero seconds is no time, as in the reader of metav1.Time; kubelets write whole seconds.
    seconds = time.seconds
    return limits.unix_moment(seconds) if seconds else None


def _moment_of_json(time: str | None) -> datetime | None:
    if not time:
        return None
    try:
        return from_text(time).replace(microsecond=0)
    except ValueError:
        return limits.UNREADABLE


FROM_MESSAGES = Leaves(_moment_of_message, lambda quantity: intern(quantity.string))
FROM_JSON = Leaves(_moment_of_json, lambda quantity: intern(str(quantity)))


def node_reducer(wanted: Wanted, leaves: Leaves) -> Callable[[shapes.NodeObject], Node]:
    """Return the function that reduces a decoded Node to the parts that are wanted."""
    conditions = wanted.conditions
    prefix = f"{wanted.annotation_prefix.rstrip('/')}/"
    capacity = wanted.capacity
    others = wanted.annotations
    chosen = wanted.labels
    moment = leaves.moment

    def kept(labels: Mapping[str, str]) -> dict[str, str]:
        if chosen is None:
            return interned(labels)
        return {intern(key): intern(labels[key]) for key in labels if key in chosen or key.startswith(prefix)}

    def reduce(found: shapes.NodeObject) -> Node:
        meta, spec, status = found.metadata, found.spec, found.status
        annotations = meta.annotations or {}
        return Node(
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resourceVersion,
            labels=kept(meta.labels or {}),
            annotations={
                intern(key): limits.cut_annotation(annotations[key])
                for key in annotations
                if key.startswith(prefix) or key in others
            },
            provider_id=spec.providerID,
            unschedulable=bool(spec.unschedulable),
            taints=tuple(
                Taint(intern(taint.key), intern(taint.value), intern(taint.effect))
                for taint in spec.taints or ()
            ),
            conditions=tuple(
                Condition(
                    type=intern(condition.type),
                    status=intern(condition.status),
                    reason=intern(limits.text(condition.reason)),
                    message=intern(limits.text(condition.message, limits.MESSAGE)),
                    heartbeat=moment(condition.lastHeartbeatTime),
                    transition=moment(condition.lastTransitionTime),
                )
                for condition in status.conditions or ()
                if condition.type in conditions
            ),
            boot_id=status.nodeInfo.bootID if status.nodeInfo is not None else "",
            allocatable=_quantities(status.allocatable, leaves) if capacity else {},
        )

    return reduce


def pod_reducer(leaves: Leaves, *, placement: bool) -> Callable[[shapes.PodObject], Pod]:
    """Return the function that reduces a decoded Pod, with its placement if `placement` asks for it."""
    moment = leaves.moment

    def reduce(found: shapes.PodObject) -> Pod:
        meta, spec, status = found.metadata, found.spec, found.status
        sources = [volume.volumeSource for volume in spec.volumes or ()]
        grace = spec.terminationGracePeriodSeconds if spec.HasField("terminationGracePeriodSeconds") else None
        return Pod(
            namespace=intern(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            node=intern(spec.nodeName),
            labels=interned(meta.labels or {}),
            annotations=dict(meta.annotations or {}),
            owner=owner_of(meta.ownerReferences),
            phase=intern(status.phase),
            ready=any(
                condition.type == "Ready" and condition.status == "True"
                for condition in status.conditions or ()
            ),
            priority=spec.priority or 0,
            priority_class=intern(spec.priorityClassName),
            grace=grace_seconds(grace),
            deleting_until=_latest(moment(meta.deletionTimestamp)),
            empty_dir=any(source.HasField("emptyDir") for source in sources),
            claims=tuple(
                source.persistentVolumeClaim.claimName
                for source in sources
                if source.HasField("persistentVolumeClaim") and source.persistentVolumeClaim
            ),
            resource_version=meta.resourceVersion,
            placement=_placement(spec, leaves) if placement else None,
        )

    return reduce


def interned(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels with each text stored once: thousands of nodes have the same few."""
    # By way of a dict: a protobuf map's own items() is slower than both steps together.
    return {intern(key): intern(value) for key, value in dict(labels).items()}


def requirement(found: shapes.Expression) -> Requirement:
    """Return an expression of a label selector or a node selector."""
    return Requirement(intern(found.key), intern(found.operator), tuple(found.values or ()))


def _latest(moment: datetime | None) -> datetime | None:
    # A pod's own grace may put its end beyond the limits. It is being deleted all the same.
    return limits.LATEST if moment == limits.UNREADABLE else moment


def _quantities(quantities: Mapping[str, Any] | None, leaves: Leaves) -> dict[str, str]:
    text = leaves.quantity
    return {intern(name): text(quantity) for name, quantity in (quantities or {}).items()}


def owner_of(references: list[shapes.OwnerReference] | None) -> Owner | None:
    """Return the owner that is the controller, None if no reference says `controller: true`."""
    for reference in references or ():
        if reference.controller:
            return Owner(intern(reference.kind), reference.name, intern(reference.apiVersion), reference.uid)
    return None


def _placement(spec: shapes.PodSpec, leaves: Leaves) -> Placement:
    affinity = spec.affinity or shapes.Affinity()
    of_nodes = affinity.nodeAffinity or shapes.NodeAffinity()
    required = of_nodes.requiredDuringSchedulingIgnoredDuringExecution or shapes.Terms()
    # An init container that always restarts is a sidecar, and keeps its share while the pod runs.
    running = [
        *(spec.containers or ()),
        *(one for one in spec.initContainers or () if one.restartPolicy == "Always"),
    ]
    requests = [one.resources.requests for one in running if one.resources is not None]
    return Placement(
        requests=tuple(_quantities(request, leaves) for request in (*requests, spec.overhead) if request),
        node_selector=interned(spec.nodeSelector or {}),
        affinity=tuple(
            tuple(requirement(one) for one in (*(term.matchExpressions or ()), *(term.matchFields or ())))
            for term in required.nodeSelectorTerms or ()
        ),
        tolerations=tuple(
            Toleration(intern(one.key), intern(one.operator or "Equal"), one.value, intern(one.effect))
            for one in spec.tolerations or ()
        ),
        topology=bool(
            affinity.HasField("podAffinity")
            or affinity.HasField("podAntiAffinity")
            or spec.topologySpreadConstraints
        ),
    )
