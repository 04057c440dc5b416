"""Which workloads the pods of a node belong to, and where PersistentVolumes can be mounted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import PODS, VOLUMES, Connection, api, on_node
from reconciler.kubernetes.wire.formats import json_format
from reconciler.kubernetes.wire.lists import list_all
from reconciler.kubernetes.wire.reducing import requirement
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model.errors import Unreachable
from reconciler.model.pod import Owner, Terms, Volume, Workload, WorkloadKind

OWNERS = 200
"""Owners that are read for one node. A node has 110 pods by default; those of further owners do not count."""

LONGEST = 5.0
"""Seconds for all owners of one node."""

PATIENCE = 2.0
"""Seconds for the retries of one request. Nothing depends on the answers."""

_APPS = "apps"
_OWNERS = ("DaemonSet", "ReplicaSet", "StatefulSet")
_FINISHED = ("Succeeded", "Failed")

_Owned = tuple[str, Owner]


class _Spec(msgspec.Struct):
    replicas: int | None = None


class _Replicated(msgspec.Struct):
    """apps/v1 Deployment, ReplicaSet or StatefulSet."""

    metadata: ObjectMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    status: _Status = msgspec.field(default_factory=_Status)


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
        form, fields = json_format(_Pod, _owner_of), on_node(node)
        owned = list_all(self._connection, PODS, form, fields=fields, patience=PATIENCE).items
        found: dict[_Owned, Workload | None] = {}
        workloads = []
        for key in owned:
            if key is None:
                continue
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
                WorkloadKind.STATEFUL_SET, self._object(namespace, "statefulsets", owner, _Replicated)
            )
        replica_set = self._object(namespace, "replicasets", owner, _Replicated)
        above = _owner(replica_set.metadata, "Deployment") if replica_set is not None else None
        if above is None:
            return _sized(WorkloadKind.REPLICA_SET, replica_set)
        return _sized(WorkloadKind.DEPLOYMENT, self._object(namespace, "deployments", above, _Replicated))

    def _object(self, namespace: str, plural: str, owner: Owner, kind: type[Kind]) -> Kind | None:
        place = api(_APPS, "v1", namespace) / plural / owner.name
        found = objects.find(self._connection, place, kind, patience=PATIENCE)
        return found if found is not None and found.metadata.uid == owner.uid else None


def _owner(metadata: ObjectMeta, *kinds: str) -> Owner | None:
    """Return the first owner of one of these kinds, None without any.

    It need not be the controller: maintenance-controller counts each owner.
    """
    for one in metadata.ownerReferences or ():
        owner = Owner(one.kind, one.name, one.apiVersion, one.uid)
        if owner.named and any(owner.is_a(kind, _APPS) for kind in kinds):
            return owner
    return None


def _owner_of(pod: _Pod) -> _Owned | None:
    owner = _owner(pod.metadata, *_OWNERS) if pod.status.phase not in _FINISHED else None
    return (pod.metadata.namespace, owner) if owner is not None else None


def _sized(kind: WorkloadKind, found: _Replicated | None) -> Workload | None:
    if found is None:
        return None
    # The API server writes the default, 1.
    replicas = found.spec.replicas if found.spec.replicas is not None else 1
    return Workload(kind, found.metadata.name, replicas)


TERMS = 64
"""Terms, expressions of a term, and values of an expression that are read. Drivers write one or two."""


class Volumes:
    """VolumeReader for the API server; safe for threads."""

    def __init__(self, connection: Connection) -> None:
        """Use this connection."""
        self._connection = connection

    def volumes(self) -> tuple[Volume, ...]:
        """Return the bound PersistentVolumes; Forbidden if we may not list them."""
        volumes, _ = objects.get_list(self._connection, VOLUMES, objects.PersistentVolume)
        return tuple(
            Volume(volume.metadata.name, claim.namespace, claim.name, _affinity(volume.spec.nodeAffinity))
            for volume in volumes
            # A released volume still names the claim that it had.
            if (claim := volume.spec.claimRef) is not None and volume.status.phase == "Bound"
        )


def _affinity(found: objects.VolumeAffinity | None) -> Terms:
    """Return the required terms. An affinity that is too large to read counts as none: nothing is claimed."""
    required = found.required if found is not None else None
    terms = (required.nodeSelectorTerms if required is not None else None) or []
    # matchFields name a node, as no label does.
    every = [[*(term.matchExpressions or ()), *(term.matchFields or ())] for term in terms]
    lengths = [len(every), *map(len, every), *(len(one.values or ()) for term in every for one in term)]
    if max(lengths) > TERMS:
        return ()
    return tuple(tuple(requirement(one) for one in term) for term in every)
