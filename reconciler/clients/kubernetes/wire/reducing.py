"""From decoded protobuf messages to our own values: a few fields are kept, the rest is dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from sys import intern
from typing import Any

from reconciler.clients.kubernetes.wire import messages
from reconciler.clients.kubernetes.wire.protobuf import parse
from reconciler.model.node import Condition, Node, Taint, Wanted
from reconciler.model.pod import Owner, Placement, Pod, Toleration
from reconciler.model.selector import Requirement


def node_reader(wanted: Wanted) -> Callable[[bytes | memoryview], Node]:
    """Return what turns one encoded Node into our Node, with the parts that are wanted."""
    conditions = wanted.conditions
    prefix = f"{wanted.annotation_prefix.rstrip('/')}/"
    capacity = wanted.capacity
    others = wanted.annotations
    chosen = wanted.labels
    decode = messages.Node

    def kept(labels: Mapping[str, str]) -> dict[str, str]:
        if chosen is None:
            return interned(labels)
        return {intern(key): intern(labels[key]) for key in labels if key in chosen or key.startswith(prefix)}

    def read(encoded: bytes | memoryview) -> Node:
        found = parse(decode, encoded)
        meta, spec, status = found.metadata, found.spec, found.status
        annotations = meta.annotations
        return Node(
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resourceVersion,
            labels=kept(meta.labels),
            annotations={
                intern(key): annotations[key]
                for key in annotations
                if key.startswith(prefix) or key in others
            },
            provider_id=spec.providerID,
            unschedulable=spec.unschedulable,
            taints=tuple(
                Taint(intern(taint.key), intern(taint.value), intern(taint.effect)) for taint in spec.taints
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
                for condition in status.conditions
                if condition.type in conditions
            ),
            boot_id=status.nodeInfo.bootID,
            allocatable=_quantities(status.allocatable) if capacity else {},
        )

    return read


def pod_reader(*, placement: bool) -> Callable[[bytes | memoryview], Pod]:
    """Return what turns one encoded Pod into our Pod, with its placement where that is asked for."""

    def read(encoded: bytes | memoryview) -> Pod:
        found = parse(messages.Pod, encoded)
        meta, spec, status = found.metadata, found.spec, found.status
        volumes = [volume.volumeSource for volume in spec.volumes]
        return Pod(
            namespace=intern(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            node=intern(spec.nodeName),
            labels=interned(meta.labels),
            annotations=dict(meta.annotations),
            owner=_owner(meta.ownerReferences),
            phase=intern(status.phase),
            ready=any(
                condition.type == "Ready" and condition.status == "True" for condition in status.conditions
            ),
            priority=spec.priority,
            priority_class=intern(spec.priorityClassName),
            grace=(
                spec.terminationGracePeriodSeconds if spec.HasField("terminationGracePeriodSeconds") else 30
            ),
            deleting_until=_moment(meta.deletionTimestamp),
            empty_dir=any(volume.HasField("emptyDir") for volume in volumes),
            claims=tuple(
                volume.persistentVolumeClaim.claimName
                for volume in volumes
                if volume.HasField("persistentVolumeClaim")
            ),
            resource_version=meta.resourceVersion,
            placement=_placement(spec) if placement else None,
        )

    return read


def interned(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels with every text shared: thousands of nodes have the same few."""
    # By way of a dict: a protobuf map's own items() is slower than both steps together.
    return {intern(key): intern(value) for key, value in dict(labels).items()}


def _moment(time: Any) -> datetime | None:
    # Zero seconds is no time, as metav1.Time's own reader has it; kubelets write whole seconds.
    seconds = time.seconds
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _quantities(quantities: Mapping[str, Any]) -> dict[str, str]:
    return {intern(name): intern(quantity.string) for name, quantity in quantities.items()}


def _owner(references: Any) -> Owner | None:
    for reference in references:
        if reference.controller:
            return Owner(intern(reference.kind), reference.name, intern(reference.apiVersion), reference.uid)
    return None


def _placement(spec: Any) -> Placement:
    affinity = spec.affinity
    required = affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    # An init container that restarts always is a sidecar, and keeps its share while the pod runs.
    running = [
        *spec.containers,
        *(container for container in spec.initContainers if container.restartPolicy == "Always"),
    ]
    requests = [container.resources.requests for container in running]
    return Placement(
        requests=tuple(_quantities(request) for request in (*requests, spec.overhead) if request),
        node_selector=interned(spec.nodeSelector),
        affinity=tuple(
            tuple(
                Requirement(intern(one.key), intern(one.operator), tuple(one.values))
                for one in (*term.matchExpressions, *term.matchFields)
            )
            for term in required.nodeSelectorTerms
        ),
        tolerations=tuple(
            Toleration(intern(one.key), intern(one.operator or "Equal"), one.value, intern(one.effect))
            for one in spec.tolerations
        ),
        topology=bool(
            affinity.HasField("podAffinity")
            or affinity.HasField("podAntiAffinity")
            or spec.topologySpreadConstraints
        ),
    )
