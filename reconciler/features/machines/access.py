"""How machine providers read and write their objects:

each path is read once a pass, and writes check the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from reconciler.http.retrying import Guard, patiently, read_only
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import BUDGETS, PODS, ApiPath, Connection, Request, api
from reconciler.kubernetes.json_patch import Patch, send_patch
from reconciler.kubernetes.wire.formats import budget_format
from reconciler.kubernetes.wire.lists import list_all, list_pods
from reconciler.kubernetes.wire.shapes import ObjectMeta, OwnerReference
from reconciler.model.errors import ClusterError, Forbidden, NotFound, Rejected, Unauthorized, Unreachable
from reconciler.model.limits import count_of
from reconciler.model.machine import MachineRef
from reconciler.model.pod import Pod, PodDisruptionBudget

Kind = TypeVar("Kind")


class Unreadable(Exception):
    """Why one machine can't be read, in words."""


class MachineAccess(Struct):
    """One connection for all providers in the cluster, with what a pass has read through it.

    `guard` raises LockLost if the lock is not ours. Without a guard, nothing can be written.
    """

    connection: Connection
    guard: Guard = read_only
    _known: dict[str, object] = field(default_factory=dict)
    _silent: ClusterError | None = None
    _versions: dict[str, str] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget what was read: an upgrade may have brought another version of an API."""
        self._known.clear()
        self._versions.clear()
        self._silent = None

    def once(self, path: ApiPath, what: str, work: Callable[[ApiPath], Kind]) -> Kind:
        """Return the first result of `work` for the path.

        Raises Unreadable, with `what` as the path's name in words. After a connection or authentication
        failure nothing more is read.
        """
        if path not in self._known:
            self._known[path] = self._ask(path, what, work)
        found: Any = self._known[path]
        if isinstance(found, Unreadable):
            raise found
        return found  # type: ignore[no-any-return]  # at one path there is one kind

    def get(self, path: ApiPath, what: str, kind: type[Kind]) -> Kind:
        """Return the object at the path, read once; raises Unreadable."""
        return self.once(path, what, lambda place: objects.get(self.connection, place, kind))

    def pods(self, node: str) -> tuple[Pod, ...]:
        """Return the pods of a node with their placement; raises Unreadable."""

        def work(_: ApiPath) -> tuple[Pod, ...]:
            return list_pods(self.connection, node, placement=True)

        found = self._ask(PODS, f"the pods of node {node}", work)
        if isinstance(found, Unreadable):
            raise found
        return found

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Return every PodDisruptionBudget, read once; raises Unreadable."""

        def work(path: ApiPath) -> tuple[PodDisruptionBudget, ...]:
            return tuple(list_all(self.connection, path, budget_format()).items)

        return self.once(BUDGETS, "PodDisruptionBudgets", work)

    def place(self, group: str, version: str = "", namespace: str = "") -> ApiPath:
        """Return the path of a group's objects, in the version that the group prefers if none is given.

        Raises ClusterError.
        """
        found = version or self._versions.get(group)
        if not found:
            found = self._versions[group] = self._version(ApiPath("apis", group))
        return api(group, found, namespace)

    def place_to_read(self, group: str, version: str = "", namespace: str = "") -> ApiPath:
        """Return the same, but raise Unreadable if the version can't be read."""
        if not version and group not in self._versions:
            self._versions[group] = self.once(ApiPath("apis", group), f"the API {group}", self._version)
        return self.place(group, version, namespace)

    def send(self, request: Request) -> None:
        """Send a write with retries; raises LockLost and ClusterError."""
        objects.send(self.connection, self.guard, request)

    def patch(self, path: ApiPath, patch: Patch) -> None:
        """Send a patch as `send` does; Conflict if the object may not be as it expects."""

        def guarded() -> None:
            self.guard()
            send_patch(self.connection, path, patch)

        patiently(guarded, sleep=self.connection.sleep)

    def delete(self, path: ApiPath, uid: str) -> None:
        """Delete the object with this UID; nothing where it has gone. Raises Conflict for another UID."""
        try:
            self.send(Request("DELETE", path, body={"preconditions": {"uid": uid}}))
        except NotFound:
            return

    def _ask(self, path: ApiPath, what: str, work: Callable[[ApiPath], Kind]) -> Kind | Unreadable:
        try:
            if self._silent is not None:
                raise self._silent
            return work(path)
        except ClusterError as error:
            if isinstance(error, Unreachable | Unauthorized):
                self._silent = error
            return Unreadable(_words(what, error))

    def _version(self, path: ApiPath) -> str:
        version = objects.get(self.connection, path, Group).preferredVersion.version
        if not version:
            raise Rejected(f"GET {path}: it names no preferred version")
        return version


def _words(what: str, error: ClusterError) -> str:
    if isinstance(error, Forbidden):
        return f"we have no right to read {what}: {error}"
    if isinstance(error, NotFound):
        # Without a Status in its answer the server has no kind at that path.
        return f"there is no {what}" if error.reason else f"this cluster has no such API: {error}"
    return f"{what} can't be read: {error}"


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
        return f"{what} is rolling out a change: {updated} of {count_of(status.replicas, 'machine')} updated"
    return ""
