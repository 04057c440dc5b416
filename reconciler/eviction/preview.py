"""What a drain of a node would do, and what would block it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from reconciler.eviction.budgets import asks, asks_none, never_allows
from reconciler.eviction.groups import disrupted
from reconciler.eviction.room import room
from reconciler.eviction.singletons import may_be_restarted
from reconciler.eviction.survey import survey
from reconciler.model.drains import Blocker, DrainOrder
from reconciler.model.node import Node
from reconciler.model.plan import Preview
from reconciler.model.pod import Pod, PodDisruptionBudget


def preview(
    order: DrainOrder,
    nodes: Iterable[Node],
    pods: Sequence[Pod],
    budgets: Iterable[PodDisruptionBudget],
    now: datetime,
) -> Preview:
    """Return what the drain would do now (UTC); `nodes` and `pods` are those of the whole cluster."""
    options = order.options
    here = [pod for pod in pods if pod.node == order.node]
    seen = survey(here, options, now=now, namespaces=order.namespaces, own_pod=order.own_pod)
    known = () if options.use_delete else tuple(budgets)
    refusing = (
        _blocker(one.pod, known, options.prefix, restart_singletons=order.restart_singletons)
        for one in seen.to_go
    )
    return Preview(
        pods=seen.verdicts,
        blockers=(*seen.refused, *seen.kept, *(blocker for blocker in refusing if blocker is not None)),
        room=room(nodes, pods, [one.pod for one in seen.to_go]),
        groups=disrupted((one.pod for one in seen.to_go), pods, order.node),
    )


def _blocker(
    pod: Pod, budgets: Sequence[PodDisruptionBudget], prefix: str, *, restart_singletons: bool
) -> Blocker | None:
    """Return why a PodDisruptionBudget would refuse the eviction of the pod now, or None.

    It follows pkg/registry/core/pod/storage/eviction.go. No budget applies to pods that have finished or
    never started. A pod with two budgets is always refused. An unready pod may be evicted with AlwaysAllow,
    otherwise only while enough other pods are healthy.
    """
    if asks_none(pod):
        return None
    covering = sorted((budget for budget in budgets if budget.covers(pod)), key=lambda budget: budget.key)
    if len(covering) > 1:
        names = ", ".join(budget.key for budget in covering)
        return Blocker(
            pod.key,
            f"is selected by several PDBs ({names}); the API server does not evict such a pod",
            names,
        )
    for budget in covering:
        because = _refusal(pod, budget)
        if because and may_be_restarted(pod, covering, prefix=prefix, everywhere=restart_singletons):
            because += (
                "; if possible, its Deployment is restarted instead: the new pod starts on another node first"
            )
        if because:
            return Blocker(pod.key, because, budget.key)
    return None


def _refusal(pod: Pod, budget: PodDisruptionBudget) -> str:
    counts = f"PDB {budget.key}: needs {budget.desired} healthy, has {budget.healthy}"
    if not asks(budget, pod) or budget.allowed > 0:
        return ""
    if not pod.ready:
        return (
            f"{counts}; the pod is not ready, and without unhealthyPodEvictionPolicy: AlwaysAllow it can be"
            " evicted only while enough other pods are"
        )
    if never_allows(budget):
        return f"{counts}, and never allows a disruption of its {budget.expected} pods"
    return counts
