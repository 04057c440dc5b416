"""Reads which workloads the pods of a node belong to, and how many replicas these have."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from reconciler.clients.kubernetes import objects
from reconciler.clients.kubernetes.connection import Connection
from reconciler.clients.kubernetes.paths import PODS, api, on_node
from reconciler.clients.kubernetes.wire.lists import list_all, pod_format
from reconciler.clients.kubernetes.wire.reducing import owner_of
from reconciler.clients.kubernetes.wire.shapes import ObjectMeta
from reconciler.errors import NotFound, Unreachable
from reconciler.model.pod import Owner, Pod
from reconciler.model.workload import Workload, WorkloadKind

OWNERS = 200
"""Owners that are read for one node. A node has 110 pods by default; those of further owners do not count."""

LONGEST = 5.0
"""Seconds for all owners of one node."""

PATIENCE = 2.0
"""Seconds for the retries of one request. Nothing depends on the answers."""

_APPS = "apps"


class _Spec(msgspec.Struct):
    replicas: int | None = None


class _Replicated(msgspec.Struct):
    """apps/v1 Deployment, ReplicaSet or StatefulSet."""

    metadata: ObjectMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)


Kind = TypeVar("Kind", _Replicated, objects.DaemonSet)


class Workloads:
    """Reads workloads over a connection."""

    def __init__(self, connection: Connection, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Use this connection, and this clock in seconds for the time that a node may take."""
        self._connection = connection
        self._clock = clock

    def on_node(self, node: str) -> tuple[Workload, ...]:
        """Return the workload of each pod of the node that has one, in the order of the pods.

        Pods of other kinds of owners are left out, and those whose owner is gone. Raises Unreachable if it
        takes too long, and the other errors of ClusterError.
        """
        ends = self._clock() + LONGEST
        fields = on_node(node)
        pods = list_all(self._connection, PODS, pod_format(), fields=fields, patience=PATIENCE).items
        found: dict[tuple[str, Owner], Workload | None] = {}
        workloads = []
        for pod, owner in _owned(pods):
            key = (pod.namespace, owner)
            if key not in found:
                if len(found) >= OWNERS:
                    continue
                if self._clock() > ends:
                    raise Unreachable(f"the API server takes more than {LONGEST:g} s for its workloads")
                found[key] = self._workload(*key)
            workload = found[key]
            if workload is not None:
                workloads.append(workload)
        return tuple(workloads)

    def _workload(self, namespace: str, owner: Owner) -> Workload | None:
        if owner.is_a("DaemonSet", _APPS):
            found = self._object(namespace, "daemonsets", owner, objects.DaemonSet)
            if found is None:
                return None
            return Workload(WorkloadKind.DAEMON_SET, owner.name, found.status.numberReady)
        if owner.is_a("StatefulSet", _APPS):
            return _sized(
                WorkloadKind.STATEFUL_SET,
                self._object(namespace, "statefulsets", owner, _Replicated),
            )
        replica_set = self._object(namespace, "replicasets", owner, _Replicated)
        above = owner_of(replica_set.metadata.ownerReferences) if replica_set is not None else None
        if above is None or not above.is_a("Deployment", _APPS) or not above.named:
            return _sized(WorkloadKind.REPLICA_SET, replica_set)
        return _sized(WorkloadKind.DEPLOYMENT, self._object(namespace, "deployments", above, _Replicated))

    def _object(self, namespace: str, plural: str, owner: Owner, kind: type[Kind]) -> Kind | None:
        """Return the owner, None if it is gone or another object has its name."""
        place = api(_APPS, "v1", namespace) / plural / owner.name
        try:
            found = objects.get(self._connection, place, kind, patience=PATIENCE)
        except NotFound:
            return None
        return found if found.metadata.uid == owner.uid else None


def _owned(pods: Iterable[Pod]) -> Iterator[tuple[Pod, Owner]]:
    """Yield each pod with its owner, if that is of a kind that counts."""
    for pod in pods:
        owner = pod.owner
        if owner is None or not owner.named or pod.finished:
            continue
        if any(owner.is_a(kind, _APPS) for kind in ("DaemonSet", "ReplicaSet", "StatefulSet")):
            yield pod, owner


def _sized(kind: WorkloadKind, found: _Replicated | None) -> Workload | None:
    if found is None:
        return None
    # The API server writes the default, 1.
    replicas = found.spec.replicas if found.spec.replicas is not None else 1
    return Workload(kind, found.metadata.name, replicas)
