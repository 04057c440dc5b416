"""Which PodDisruptionBudgets the API server checks when a pod is evicted.

Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.selector import Operator

MOST_COVERING = 10
"""Budgets of one pod that are found. The API server refuses its eviction from the second one on."""

_VALUES = 8


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
        self._by_label: dict[tuple[str, ...], list[PodDisruptionBudget]] = {}
        self._keys: dict[str, set[str]] = {}
        for budget in budgets:
            for label in _labels(budget):
                self._by_label.setdefault((budget.namespace, *label), []).append(budget)
                self._keys.setdefault(budget.namespace, set()).update(label[:1])

    def covering(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select the pod, sorted by namespace and name; of very many, the first."""
        keys, labels = self._keys.get(pod.namespace), pod.labels
        if keys is None:
            return ()
        places: list[tuple[str, ...]] = [()]
        # Few labels are those of budgets, and a pod has few labels where a namespace has many budgets.
        for key in keys.intersection(labels):
            places += ((key,), (key, labels[key]))
        candidates = (one for place in places for one in self._by_label.get((pod.namespace, *place), ()))
        found = islice((one for one in candidates if one.covers(pod)), MOST_COVERING)
        return tuple(sorted(found, key=lambda budget: budget.key))


def _labels(budget: PodDisruptionBudget) -> set[tuple[str, ...]]:
    """Return labels of which each pod of the budget has one: a key and a value, only a key, or neither."""
    if budget.selector is None:
        return set()
    keys: set[tuple[str, ...]] = {()}
    for one in budget.selector.requirements:
        if one.operator == Operator.IN and len(one.values) <= _VALUES:
            return {(one.key, value) for value in one.values}
        if one.operator in (Operator.IN, Operator.EXISTS):
            keys = {(one.key,)}
    return keys
