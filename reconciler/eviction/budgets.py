"""Which PodDisruptionBudgets the API server checks when a pod is evicted.

Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from reconciler.model.pod import Pod, PodDisruptionBudget


def asks_none(pod: Pod) -> bool:
    """Whether no budget applies: the pod has finished, never started, or is being deleted (canIgnorePDB)."""
    return pod.finished or pod.phase == "Pending" or pod.deleting_until is not None


def asks(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the eviction of the pod uses one of the budget's allowed disruptions.

    The eviction of an unready pod uses none with AlwaysAllow. With IfHealthyBudget, and by default, it uses
    none while enough other pods are healthy.
    """
    if pod.ready:
        return True
    return not (budget.unhealthy_always or (budget.healthy >= budget.desired > 0))


def would_refuse(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the server would refuse the eviction now because of this budget."""
    return budget.allowed <= 0 and asks(budget, pod)
