"""Machines in MachineSets, as Cluster API and OpenShift's machine API keep them.

What this builds upon:

* A machine's node is the one in its `status.nodeRef`, by name and, where it has one, by UID, and its
  `spec.providerID` must be the node's. What a node says of itself is only a hint: a kubelet may write
  annotations, and they outlive the machine.
* The owner of a MachineSet puts its number back, so only the topmost owner is scaled.
* A MachineSet that is scaled down deletes first what is marked for it.
* The number is written through the subresource `scale`: the right to patch a whole MachineSet would be the
  right to make machines of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from reconciler.features.machines.access import (
    MachineAccess,
    MachineObject,
    PoolObject,
    Unreadable,
    controller,
    is_control_plane,
    is_put_back,
    number_of,
    other_machine,
    why_busy,
)
from reconciler.http.retrying import write_until_settled
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, ApiPath, Request
from reconciler.kubernetes.json_patch import Patch
from reconciler.kubernetes.wire.shapes import OwnerReference
from reconciler.model.errors import Conflict, NotFound, Rejected
from reconciler.model.limits import count_of, is_object_name
from reconciler.model.machine import CLUSTER_API, OPENSHIFT, Machine, MachineRef, Pool, Remove, ScaleUp
from reconciler.model.values import replace

_PLURALS = {"MachineSet": "machinesets", "MachineDeployment": "machinedeployments"}


class MachineApi(Struct, frozen=True):
    """One provider's API group, its version where it is fixed, and the annotation that marks a machine."""

    group: str
    version: str = ""
    mark: tuple[str, str] = ("", "")


APIS = {
    # The mark counts whatever its value (internal/controllers/machineset/machineset_delete_policy.go). During
    # a rollout another MachineSet may be scaled down, whatever is marked (kubernetes-sigs/cluster-api#8205),
    # so a pool that is rolling out is busy.
    CLUSTER_API: MachineApi("cluster.x-k8s.io", mark=("cluster.x-k8s.io/delete-machine", "yes")),
    # The mark counts unless it is empty (machine-api-operator, pkg/controller/machineset/delete_policy.go).
    # The version is fixed: the group prefers v1, which has no machines.
    OPENSHIFT: MachineApi("machine.openshift.io", "v1beta1", ("machine.openshift.io/delete-machine", "true")),
}
"""The API of each provider that keeps machines in MachineSets."""


class MachineSets:
    """Machines and their sets in one API group, as MachineReader and MachineWriter."""

    def __init__(self, access: MachineAccess, api: MachineApi) -> None:
        """Use this access to the cluster's objects."""
        self._access = access
        self._api = api

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine as it is now, in order; what can't be read of one is its `problem` only."""
        return tuple(self._machine(ref) for ref in refs)

    def forget(self) -> None:
        """Forget what was read for an earlier pass."""
        self._access.forget()

    def scale_up(self, action: ScaleUp) -> None:
        """Scale the pool to `wanted`; nothing where its number is as high.

        Raises Conflict where the number is not as it was seen, and the other errors of ClusterError.
        """
        self._scale(action.machine, action.wanted, lambda number: number >= action.wanted)

    def remove(self, action: Remove) -> None:
        """Delete the machine; nothing where it is gone or being deleted.

        Without `lower` it is deleted. With it, the machine is marked to go first, and then its pool is scaled
        down by one; nothing where the pool is as low already. Raises Conflict where another machine has its
        name or the number is not as it was seen, and the other errors of ClusterError.
        """
        machine, lower = action.machine, action.lower
        if machine.deleting:
            return
        if lower is None or machine.pool is None or machine.pool.wanted is None:
            self._access.delete(self._place_of(machine), machine.uid)
            return
        wanted = machine.pool.wanted
        # Never scaled down before it is marked: any machine could go.
        if wanted > lower and self._mark(machine):
            self._scale(machine, wanted - 1, lambda number: number <= lower)

    # Reading.

    def _machine(self, ref: MachineRef) -> Machine:
        try:
            return self._read(ref)
        except (Unreadable, Rejected) as error:
            return Machine(ref, problem=str(error))

    def _read(self, ref: MachineRef) -> Machine:
        what = f"Machine {ref.namespace}/{ref.name}"
        if not (is_object_name(ref.name) and is_object_name(ref.namespace)):
            raise Unreadable(f"there can be no {what}")
        place = self._access.place_to_read(self._api.group, self._api.version, ref.namespace)
        found = self._access.get(place / "machines" / ref.name, what, MachineObject)
        node = found.status.nodeRef
        if node is None or node.name != ref.node:
            of = f"node {node.name}" if node is not None and node.name else "no node"
            raise Unreadable(f"{what} is of {of}, not of this one")
        if node.uid and node.uid != ref.uid:
            raise Unreadable(f"{what} is of an earlier node {ref.node}, not of this one")
        if why := other_machine(found.spec.providerID, ref):
            raise Unreadable(f"{what} {why}")
        meta = found.metadata
        owner, kind = controller(meta, self._api.group)
        if owner is not None and kind == "MachinePool":
            raise Unreadable(
                f"{what} belongs to MachinePool {owner.name}: of those no single one is replaced"
            )
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
        return replace(made, pool=self._pool(place, ref, found, owner))

    def _pool(self, place: ApiPath, ref: MachineRef, machine: MachineObject, owner: OwnerReference) -> Pool:
        """Return what keeps the number: the MachineSet that owns it, or the MachineDeployment above it."""
        group, kind = self._api.group, "MachineSet"
        metas = [machine.metadata]
        while True:
            name, what = owner.name, f"{kind} {ref.namespace}/{owner.name[:253]}"
            if not is_object_name(name):
                raise Unreadable(f"there can be no {what}")
            found = self._access.get(place / _PLURALS[kind] / name, what, PoolObject)
            if owner.uid and owner.uid != found.metadata.uid:
                raise Unreadable(f"{what} is not the one that owns the machine: it was created again")
            metas.append(found.metadata)
            above, kind_above = controller(found.metadata, group)
            if above is None or (kind, kind_above) != ("MachineSet", "MachineDeployment"):
                break
            kind, owner = kind_above, above
        return Pool(
            kind=kind,
            name=name,
            namespace=ref.namespace,
            wanted=number_of(found),
            ready=found.status.readyReplicas or 0,
            revision=found.metadata.uid,
            scales=above is None and not is_put_back(found.metadata, group),
            busy=why_busy(f"{kind} {name}", metas, found.status, machine.status.authoritativeAPI),
        )

    # Writing.

    def _mark(self, machine: Machine) -> bool:
        """Mark the machine as the one to go first; return whether it is still there."""
        key, value = self._api.mark
        body = {"metadata": {"uid": machine.uid, "annotations": {key: value}}}
        place = self._place_of(machine)
        try:
            self._access.send(Request("PATCH", place, body=body, content_type=MERGE_PATCH))
        except NotFound:
            return False
        except Rejected as error:
            # A UID that is not the object's is a 422.
            now = objects.get(self._access.connection, place, objects.OnlyMetadata)
            if now.metadata.uid == machine.uid:
                raise
            raise Conflict(f"machine {machine.name} was deleted and created again", status=409) from error
        return True

    def _scale(self, machine: Machine, number: int, enough: Callable[[int], bool]) -> None:
        """Write the pool's number, unless it is `enough` already; Conflict where it is not as it was seen."""
        pool = machine.pool
        if pool is None or pool.wanted is None:
            raise Rejected(f"machine {machine.name}: nothing keeps a number of it")
        if enough(pool.wanted):
            return
        connection = self._access.connection
        path = self._place(pool.namespace) / _PLURALS[pool.kind] / pool.name
        patch = Patch(pool.revision)
        # The API server leaves 0 out.
        patch.expect(pool.wanted or None, "spec", "replicas")
        patch.put(number, "spec", "replicas")

        def write() -> None:
            self._access.patch(path / "scale", patch)

        def settled() -> bool:
            now = objects.get(connection, path, PoolObject)
            if enough(number_of(now)):
                # An earlier try had written it, and its answer was lost.
                return True
            if number_of(now) != pool.wanted:
                message = (
                    f"{pool} is not as it was seen: it wants "
                    f"{count_of(number_of(now), 'machine')}, not {pool.wanted}"
                )
                raise Conflict(message, status=409)
            return False

        write_until_settled(write, settled, sleep=connection.sleep)

    def _place(self, namespace: str) -> ApiPath:
        return self._access.place(self._api.group, self._api.version, namespace)

    def _place_of(self, machine: Machine) -> ApiPath:
        return self._place(machine.ref.namespace) / "machines" / machine.name
