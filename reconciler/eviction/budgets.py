"""What the API server asks of a budget when a pod is evicted.

Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from reconciler.model.pod import Pod, PodDisruptionBudget


def asks_none(pod: Pod) -> bool:
    """Whether no budget is asked: the pod has ended, never started, or is being deleted (canIgnorePDB)."""
    return pod.finished or pod.phase == "Pending" or pod.deleting_until is not None


def asks(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether evicting the pod needs one of the budget's allowed disruptions.

    An unready pod needs none under AlwaysAllow, nor where enough others are healthy (IfHealthyBudget, and
    unset).
    """
    if pod.ready:
        return True
    return not (budget.unhealthy_always or (budget.healthy >= budget.desired > 0))


def would_refuse(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the server would refuse the eviction now in this budget's name."""
    return budget.allowed <= 0 and asks(budget, pod)
