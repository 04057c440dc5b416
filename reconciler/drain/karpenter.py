"""Which pods keep Karpenter from finishing the deletion of a NodeClaim.

Karpenter drains the node again before it deletes the machine, by its own rules (karpenter,
pkg/utils/pod/scheduling.go and pkg/controllers/node/termination/terminator). It waits for every pod that it
would have to evict, and without a terminationGracePeriod on the NodeClaim it waits without end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.drain.budgets import asks_none, would_refuse
from reconciler.model.node import DISRUPTED_TAINT
from reconciler.model.pod import DO_NOT_DISRUPT, Pod, PodDisruptionBudget, Toleration

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
