"""Karpenter's NodeClaims: read by node, and deleted. Karpenter itself brings the next machine.

A NodeClaim's node is the one in its `status.nodeName`, and its `status.providerID` must be the node's. What a
node says of itself is only a hint: a kubelet may write its labels and annotations, and they outlive the
machine.

Karpenter drains the node again before it deletes the machine, and may never end. So the pods of a node whose
claim is to be deleted next are read, one list for each such node, and PodDisruptionBudgets once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from reconciler.drain.refusal import asks_none, would_refuse
from reconciler.features.machines.access import MachineAccess, NodeClaim, Unreadable, other_machine
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import ApiPath
from reconciler.kubernetes.wire.shapes import decode
from reconciler.model.errors import Rejected
from reconciler.model.machine import Machine, MachineRef, Pool, Remove, ScaleUp
from reconciler.model.node import DISRUPTED_TAINT, KARPENTER_LABEL
from reconciler.model.pod import DO_NOT_DISRUPT, Pod, PodDisruptionBudget, Toleration

GROUP = "karpenter.sh"


class Karpenter:
    """NodeClaims, as MachineReader and MachineWriter."""

    def __init__(self, access: MachineAccess) -> None:
        """Use this access to the cluster's objects."""
        self._access = access

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine as it is now, in order; all NodeClaims are listed once."""
        return tuple(self._machine(ref) for ref in refs)

    def forget(self) -> None:
        """Forget what was read for an earlier pass."""
        self._access.forget()

    def scale_up(self, action: ScaleUp) -> None:
        """Raise Rejected: a NodePool keeps no number of machines."""
        raise Rejected(f"machine {action.machine.name}: nothing keeps a number of it")

    def remove(self, action: Remove) -> None:
        """Delete the NodeClaim; nothing where it is gone or being deleted. Raises ClusterError."""
        machine = action.machine
        if not machine.deleting:
            self._access.delete(self._access.place(GROUP) / "nodeclaims" / machine.name, machine.uid)

    def _machine(self, ref: MachineRef) -> Machine:
        try:
            path = self._access.place_to_read(GROUP) / "nodeclaims"
            claims, broken = self._access.once(path, "NodeClaims", self._claims)
        except Unreadable as error:
            return Machine(ref, problem=str(error))
        found = claims.get(ref.node, [])
        if len(found) != 1:
            also = f", and {broken} can't be read" if broken else ""
            return Machine(ref, problem=f"{len(found) or 'no'} NodeClaims are of this node{also}")
        if why := other_machine(found[0].status.providerID, ref):
            return Machine(ref, problem=f"NodeClaim {found[0].metadata.name} {why}")
        meta = found[0].metadata
        try:
            stalls = self._stalls(ref, found[0])
        except Unreadable as error:
            return Machine(ref, problem=str(error))
        pool = (meta.labels or {}).get(KARPENTER_LABEL)
        return Machine(
            ref,
            name=meta.name,
            uid=meta.uid,
            pool=Pool("NodePool", pool) if pool else None,
            deleting=meta.deletionTimestamp is not None,
            stalls=stalls,
        )

    def _stalls(self, ref: MachineRef, claim: NodeClaim) -> str:
        """Return why Karpenter would not finish the deletion; raises Unreadable.

        A claim with a terminationGracePeriod always goes, and one that is being deleted is past help.
        """
        deleting = claim.metadata.deletionTimestamp is not None
        if not ref.drained or deleting or claim.spec.terminationGracePeriod is not None:
            return ""
        pods = self._access.pods(ref.node)
        why = stalls(pods, self._access.budgets()) if pods else ""
        without = f"and NodeClaim {claim.metadata.name} has no terminationGracePeriod"
        return f"{why}, {without}" if why else ""

    def _claims(self, path: ApiPath) -> tuple[dict[str, list[NodeClaim]], int]:
        """Return all NodeClaims by their nodes' names, and how many can't be read."""
        listed, _ = objects.get_list(self._access.connection, path, msgspec.Raw)
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


_SHOWN = 3


def stalls(pods: Iterable[Pod], budgets: Sequence[PodDisruptionBudget]) -> str:
    """Return why a deletion without terminationGracePeriod would not end now, empty if it would.

    `pods` are those of the node, with their placement.
    """
    found = [f"pod {pod.key} {why}" for pod in pods if _is_waited_for(pod) and (why := _why(pod, budgets))]
    more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _is_waited_for(pod: Pod) -> bool:
    if pod.finished or pod.mirror or pod.deleting_until is not None:
        return False
    if pod.owner is not None and pod.owner.kind == "Node":
        return False
    return not any(map(_tolerates, pod.placement.tolerations if pod.placement is not None else ()))


def _tolerates(one: Toleration) -> bool:
    if one.effect not in ("", "NoSchedule"):
        return False
    # Karpenter waits for no pod that tolerates its taint, which has the effect NoSchedule and no value.
    if one.operator == "Exists":
        return one.key in ("", DISRUPTED_TAINT)
    return one.key == DISRUPTED_TAINT and one.value == ""


def _why(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> str:
    if pod.annotations.get(DO_NOT_DISRUPT) == "true":
        return f"has {DO_NOT_DISRUPT}"
    if asks_none(pod):
        return ""
    covering = sorted(budget.key for budget in budgets if budget.covers(pod))
    if len(covering) > 1:
        return f"is selected by several PodDisruptionBudgets ({', '.join(covering)})"
    refusing = [one.key for one in budgets if one.covers(pod) and would_refuse(one, pod)]
    return f"can't be evicted now because of PodDisruptionBudget {refusing[0]}" if refusing else ""
