"""Which PodDisruptionBudgets the API server checks when a pod is evicted.

Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.selector import Operator


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


def never_allows(budget: PodDisruptionBudget) -> bool:
    """Whether the budget allows no disruption even while all of its pods are healthy."""
    return bool(budget.expected) and budget.desired >= budget.expected


class BudgetIndex:
    """Which budgets select a pod, without a look at every budget of its namespace."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        """Index the budgets by a label that their pods must have; the others only by namespace."""
        self._by_label: dict[tuple[str, str, str], list[PodDisruptionBudget]] = {}
        self._others: dict[str, list[PodDisruptionBudget]] = {}
        for budget in budgets:
            requirements = budget.selector.requirements if budget.selector is not None else ()
            exact = (one for one in requirements if one.operator == Operator.IN and len(one.values) == 1)
            label = next(exact, None)
            if label is not None:
                key = budget.namespace, label.key, label.values[0]
                self._by_label.setdefault(key, []).append(budget)
            else:
                self._others.setdefault(budget.namespace, []).append(budget)

    def covering(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select the pod, sorted by namespace and name."""
        found = [*self._others.get(pod.namespace, ())]
        for key, value in pod.labels.items():
            found += self._by_label.get((pod.namespace, key, value), ())
        return tuple(sorted((one for one in found if one.covers(pod)), key=lambda budget: budget.key))
