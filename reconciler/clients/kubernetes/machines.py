"""The machines behind nodes that are objects of the cluster: Karpenter's, Cluster API's, OpenShift's.

What their owners do with them is theirs to know; what we build upon:

* A node is told by `status.nodeRef.name` (`status.nodeName` of a NodeClaim), never by its annotation alone: a
  kubelet may write that one, and it outlives its machine.
* Whoever owns a MachineSet puts its number back, so that only the topmost owner is scaled.
* A MachineSet that is lowered takes first what is marked for it: in Cluster API by the annotation
  `cluster.x-k8s.io/delete-machine`, whatever its value (internal/controllers/machineset/
  machineset_delete_policy.go), in OpenShift by `machine.openshift.io/delete-machine`, unless it is empty
  (machine-api-operator, pkg/controller/machineset/delete_policy.go). In the midst of a rollout it may be
  another MachineSet that is lowered, whatever is marked (kubernetes-sigs/cluster-api#8205): busy until then.
* The number is written through the subresource `scale`: the right to patch a MachineSet as a whole would be
  the right to make machines of any kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from reconciler.clients.guard import Guard, read_only
from reconciler.clients.kubernetes import objects
from reconciler.clients.kubernetes.connection import MERGE_PATCH, Connection, Request
from reconciler.clients.kubernetes.machine_objects import (
    Group,
    MachineObject,
    NodeClaim,
    PoolObject,
    controller,
    is_control_plane,
    is_put_back,
    number_of,
    why_busy,
)
from reconciler.clients.kubernetes.wire.jsonlists import decode
from reconciler.clients.retrying import patiently, write_until_settled
from reconciler.errors import ClusterError, Conflict, Forbidden, NotFound, Rejected, Unauthorized, Unreachable
from reconciler.model.machine import Machine, MachineProvider, MachineRef, Pool, Raise, Remove
from reconciler.model.node import KARPENTER_LABEL

_PLURALS = {"MachineSet": "machinesets", "MachineDeployment": "machinedeployments"}
# metadata.name: what is no such name would be another path.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class _Api:
    """One provider's: its API group, and the annotation by which a machine is taken first."""

    group: str
    version: str = ""
    mark: tuple[str, str] = ("", "")


_APIS = {
    MachineProvider.KARPENTER: _Api("karpenter.sh"),
    MachineProvider.CLUSTER_API: _Api("cluster.x-k8s.io", mark=("cluster.x-k8s.io/delete-machine", "yes")),
    # The group prefers v1, which has no machines.
    MachineProvider.OPENSHIFT: _Api(
        "machine.openshift.io", "v1beta1", mark=("machine.openshift.io/delete-machine", "true")
    ),
}


class _Untold(Exception):
    """What can't be told of one machine, in words."""


Kind = TypeVar("Kind")


class _Look:
    """The reads of one call: each place once, and none any more once nobody answers or we are nobody."""

    def __init__(self) -> None:
        self._known: dict[str, object] = {}
        self._silent: ClusterError | None = None

    def once(self, path: str, what: str, work: Callable[[str], Kind]) -> Kind:
        """Return what `work` returned for the path first; raises _Untold, `what` being the path in words."""
        if path not in self._known:
            self._known[path] = self._ask(path, what, work)
        found: Any = self._known[path]
        if isinstance(found, _Untold):
            raise found
        return found  # type: ignore[no-any-return]  # at one path there is one kind

    def _ask(self, path: str, what: str, work: Callable[[str], object]) -> object:
        try:
            if self._silent is not None:
                raise self._silent
            return work(path)
        except ClusterError as error:
            if isinstance(error, Unreachable | Unauthorized):
                self._silent = error
            return _Untold(_words(what, error))


class ClusterMachines:
    """The cluster's own objects as MachineReader and MachineWriter want them, for all providers but AKS."""

    def __init__(self, connection: Connection, *, guard: Guard | None = None) -> None:
        """Take a connection, and what raises LockLost where the lock is not ours; without it, only read."""
        self._connection = connection
        self._guard = guard or read_only
        self._versions: dict[MachineProvider, str] = {}

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each as it is now, in order; what can't be told of one is its problem, and no other's."""
        self._versions.clear()
        look = _Look()
        return tuple(self._machine(look, ref) for ref in refs)

    def raise_pool(self, action: Raise) -> None:
        """Raise the pool's number to `wanted`; where it is as high, nothing.

        Raises Conflict where the number is not as it was seen, and the other errors of ClusterError.
        """
        self._scale(action.machine, action.wanted, lambda number: number >= action.wanted)

    def remove(self, action: Remove) -> None:
        """Have the machine deleted; where it is gone or going, nothing.

        Without `lower` it is deleted. With it, it is marked as the one to go first, and then its pool lowered
        by one; nothing where the pool is as low already. Raises Conflict where another machine bears its
        name or the number is not as it was seen, and the other errors of ClusterError.
        """
        machine, lower = action.machine, action.lower
        if machine.deleting:
            return
        if lower is None or machine.pool is None or machine.pool.wanted is None:
            self._delete(machine)
            return
        wanted = machine.pool.wanted
        # Never lowered before it is marked: it would be any machine that goes.
        if wanted > lower and self._mark(machine):
            self._scale(machine, wanted - 1, lambda number: number <= lower)

    # Reading.

    def _machine(self, look: _Look, ref: MachineRef) -> Machine:
        try:
            if ref.provider not in _APIS:
                raise _Untold(f"{ref.provider} keeps no machines in the cluster")
            if ref.provider is MachineProvider.KARPENTER:
                return self._claimed(look, ref)
            return self._made(look, ref)
        except _Untold as untold:
            return Machine(ref, problem=str(untold))

    def _claimed(self, look: _Look, ref: MachineRef) -> Machine:
        claims, broken = look.once(
            f"{self._place(ref.provider, look=look)}/nodeclaims", "NodeClaims", self._claims
        )
        found = claims.get(ref.node, [])
        if len(found) != 1:
            also = f", and {broken} can't be read" if broken else ""
            raise _Untold(f"{len(found) or 'no'} NodeClaims are of this node{also}")
        meta = found[0].metadata
        pool = (meta.labels or {}).get(KARPENTER_LABEL)
        return Machine(
            ref,
            name=meta.name,
            uid=meta.uid,
            pool=Pool("NodePool", pool) if pool else None,
            deleting=meta.deletionTimestamp is not None,
        )

    def _claims(self, path: str) -> tuple[dict[str, list[NodeClaim]], int]:
        """Return all NodeClaims by their nodes' names, and how many can't be read."""
        listed, _ = objects.get_list(self._connection, path, msgspec.Raw)
        found: dict[str, list[NodeClaim]] = {}
        broken = 0
        for raw in listed:
            try:
                claim = decode(NodeClaim, bytes(raw))
            except Rejected:
                broken += 1
                continue
            found.setdefault(claim.status.nodeName, []).append(claim)
        return found, broken

    def _made(self, look: _Look, ref: MachineRef) -> Machine:
        what = f"Machine {ref.namespace}/{ref.name}"
        if not (_NAME.fullmatch(ref.name) and _NAME.fullmatch(ref.namespace)):
            raise _Untold(f"there can be no {what}")
        place = self._place(ref.provider, ref.namespace, look)
        found = look.once(f"{place}/machines/{ref.name}", what, self._get(MachineObject))
        node = found.status.nodeRef.name if found.status.nodeRef else ""
        if node != ref.node:
            raise _Untold(f"{what} is of {f'node {node}' if node else 'no node'}, not of this one")
        meta = found.metadata
        owner, kind = controller(meta, _APIS[ref.provider].group)
        if owner is not None and kind == "MachinePool":
            raise _Untold(f"{what} belongs to MachinePool {owner.name}: of those no single one is replaced")
        control_plane = is_control_plane(meta, kind)
        made = Machine(
            ref,
            name=meta.name,
            uid=meta.uid,
            deleting=meta.deletionTimestamp is not None,
            control_plane=control_plane,
        )
        if owner is None or control_plane:
            return made
        return replace(made, pool=self._pool(look, place, ref, found, owner.name))

    def _pool(self, look: _Look, place: str, ref: MachineRef, machine: MachineObject, name: str) -> Pool:
        """Return what keeps the number: the MachineSet of that name, or the MachineDeployment above it."""
        group, kind = _APIS[ref.provider].group, "MachineSet"
        metas = [machine.metadata]
        while True:
            found = look.once(
                f"{place}/{_PLURALS[kind]}/{name}", f"{kind} {ref.namespace}/{name}", self._get(PoolObject)
            )
            metas.append(found.metadata)
            above, kind_above = controller(found.metadata, group)
            if above is None or (kind, kind_above) != ("MachineSet", "MachineDeployment"):
                break
            kind, name = kind_above, above.name
        return Pool(
            kind=kind,
            name=name,
            namespace=ref.namespace,
            wanted=number_of(found),
            ready=found.status.readyReplicas or 0,
            revision=found.metadata.resourceVersion,
            scales=above is None and not is_put_back(found.metadata, group),
            busy=why_busy(f"{kind} {name}", metas, found.status, machine.status.authoritativeAPI),
        )

    def _get(self, kind: type[Kind]) -> Callable[[str], Kind]:
        return lambda path: objects.get(self._connection, path, kind)

    def _place(self, provider: MachineProvider, namespace: str = "", look: _Look | None = None) -> str:
        """Return where a provider's objects are, in the version that its API group prefers."""
        api = _APIS[provider]
        version = api.version or self._versions.get(provider)
        if not version:
            path = f"/apis/{api.group}"
            version = look.once(path, f"the API {api.group}", self._version) if look else self._version(path)
            self._versions[provider] = version
        place = f"/apis/{api.group}/{version}"
        return f"{place}/namespaces/{namespace}" if namespace else place

    def _version(self, path: str) -> str:
        version = objects.get(self._connection, path, Group).preferredVersion.version
        if not version:
            raise Rejected(f"GET {path}: it names no preferred version")
        return version

    # Writing.

    def _delete(self, machine: Machine) -> None:
        body = {"preconditions": {"uid": machine.uid}}
        try:
            self._send(Request("DELETE", self._place_of(machine), body=body))
        except NotFound:
            return

    def _mark(self, machine: Machine) -> bool:
        """Mark the machine as the one to go first; return whether it is still there."""
        key, value = _APIS[machine.ref.provider].mark
        body = {"metadata": {"uid": machine.uid, "annotations": {key: value}}}
        place = self._place_of(machine)
        try:
            self._send(Request("PATCH", place, body=body, content_type=MERGE_PATCH))
        except NotFound:
            return False
        except Rejected as error:
            # A UID that is not the object's is a 422.
            if objects.get(self._connection, place, objects.OnlyMetadata).metadata.uid == machine.uid:
                raise
            raise Conflict(f"machine {machine.name} was deleted and made anew", status=409) from error
        return True

    def _scale(self, machine: Machine, number: int, enough: Callable[[int], bool]) -> None:
        """Write the pool's number, unless it is `enough` already; Conflict where it is not as it was seen.

        Its owner writes its status every few seconds: where only that has changed it is tried again.
        """
        pool = machine.pool
        if pool is None or pool.wanted is None:
            raise Rejected(f"machine {machine.name}: nothing keeps a number of it")
        if enough(pool.wanted):
            return
        path = f"{self._place(machine.ref.provider, pool.namespace)}/{_PLURALS[pool.kind]}/{pool.name}"
        revision = pool.revision

        def write() -> None:
            body = {"metadata": {"resourceVersion": revision}, "spec": {"replicas": number}}
            self._send(Request("PATCH", f"{path}/scale", body=body, content_type=MERGE_PATCH))

        def settled() -> bool:
            nonlocal revision
            now = objects.get(self._connection, path, PoolObject)
            if enough(number_of(now)):
                # A try whose answer was lost had written it.
                return True
            if number_of(now) != pool.wanted:
                told = f"{pool} is not as it was seen: it wants {number_of(now)} machines, not {pool.wanted}"
                raise Conflict(told, status=409)
            revision = now.metadata.resourceVersion
            return False

        write_until_settled(write, settled, sleep=self._connection.sleep)

    def _send(self, request: Request) -> None:
        def send() -> None:
            self._guard()
            self._connection.send(request)

        patiently(send, sleep=self._connection.sleep)

    def _place_of(self, machine: Machine) -> str:
        if machine.ref.provider is MachineProvider.KARPENTER:
            return f"{self._place(MachineProvider.KARPENTER)}/nodeclaims/{machine.name}"
        return f"{self._place(machine.ref.provider, machine.ref.namespace)}/machines/{machine.name}"


def _words(what: str, error: ClusterError) -> str:
    if isinstance(error, Forbidden):
        return f"we have no right to read {what}: {error}"
    if isinstance(error, NotFound):
        # The server has no kind by that path where its answer is no Status.
        return f"there is no {what}" if error.reason else f"this cluster has no such API: {error}"
    return f"{what} can't be read: {error}"
