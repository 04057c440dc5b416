"""The budgets, shared by all drains: who asks, who waits, and what is known of each.

One eviction is in flight per budget: several at once cost refusals and conflicts on the server, and bring
nothing (docs/bench.md). What a budget allows is what its watch said, less what went since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.eviction.budgets import asks, asks_none, would_refuse
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetChange, BudgetGone, Listed


@dataclass(slots=True)
class PdbTracker:
    """All budgets by `namespace/name`; `known` once the watch has listed them, `broken` while it can't."""

    known: bool = False
    broken: bool = False
    _budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    _by_namespace: dict[str, dict[str, PodDisruptionBudget]] = field(default_factory=dict)
    _busy: dict[str, str] = field(default_factory=dict)
    _covers: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = field(default_factory=dict)
    _ask_at: dict[str, datetime] = field(default_factory=dict)
    _refusals: dict[str, int] = field(default_factory=dict)

    @property
    def all(self) -> Mapping[str, PodDisruptionBudget]:
        """Every budget that the watch told of."""
        return self._budgets

    def see(self, change: BudgetChange) -> str | None:
        """Take one item of the watch; returns the budget's key when pods that wait for it may ask again."""
        match change:
            case Listed():
                self.known, self.broken = True, False
                return None
            case BudgetGone(key):
                self._budgets.pop(key, None)
                self._by_namespace.get(key.partition("/")[0], {}).pop(key, None)
                self._covers.clear()
                return key
            case budget:
                self._put(budget)
                if budget.allowed <= 0:
                    return None
                self._ask_at.pop(budget.key, None)
                self._refusals.pop(budget.key, None)
                return budget.key

    def forget(self, *, broken: bool = False) -> None:
        """The watch is gone: what was known may not be so any more."""
        self.known, self.broken = False, broken
        self._budgets.clear()
        self._by_namespace.clear()
        self._covers.clear()

    def covering(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that the server would ask about the pod."""
        if asks_none(pod):
            return ()
        mine = self._by_namespace.get(pod.namespace, {})
        # Asked for every pod after every event, while selectors and labels hardly ever change.
        labels, keys = self._covers.get(pod.uid, (None, ()))
        if labels is not pod.labels:
            keys = tuple(budget.key for budget in mine.values() if budget.covers(pod))
            self._covers[pod.uid] = (pod.labels, keys)
        return tuple(mine[key] for key in keys)

    def take(self, budgets: tuple[PodDisruptionBudget, ...], uid: str) -> bool:
        """Take the place of each budget for one eviction, or none where one is taken."""
        if any(self._busy.get(budget.key, uid) != uid for budget in budgets):
            return False
        self._busy.update({budget.key: uid for budget in budgets})
        return True

    def held_by(self, uid: str) -> frozenset[str]:
        """Return the budgets whose place this pod's eviction has."""
        return frozenset(key for key, holder in self._busy.items() if holder == uid)

    def release(self, uid: str) -> None:
        """The eviction of this pod was answered."""
        for key in [key for key, holder in self._busy.items() if holder == uid]:
            del self._busy[key]

    def spent(self, pod: Pod) -> None:
        """One eviction was granted: until the watch says so, its budgets allow one less."""
        for budget in self.covering(pod):
            if asks(budget, pod):
                self._put(replace(budget, allowed=max(0, budget.allowed - 1)))

    def exhausted(self, key: str, now: datetime, first: timedelta, last: timedelta) -> None:
        """The server refused in this budget's name, whatever we believed: ask again after a while."""
        refusals = self._refusals.get(key, 0)
        self._refusals[key] = refusals + 1
        self._ask_at[key] = now + backoff(refusals, first, last)
        if key in self._budgets:
            self._put(replace(self._budgets[key], allowed=0))

    def closed_until(
        self, budget: PodDisruptionBudget, pod: Pod, now: datetime, last: timedelta
    ) -> datetime | None:
        """Tell until when asking about the pod is of no use, None where it may be asked now.

        The watch says when a budget allows something again; should it fail us, the server is asked anyway.
        """
        if not would_refuse(budget, pod):
            return None
        ask_at = self._ask_at.setdefault(budget.key, now + last)
        return ask_at if ask_at > now else None

    def hurry(self, now: datetime) -> None:
        """The clock went back: whatever was to happen later may happen now."""
        self._ask_at = {key: min(at, now) for key, at in self._ask_at.items()}

    def _put(self, budget: PodDisruptionBudget) -> None:
        former = self._budgets.get(budget.key)
        if former is None or former.selector != budget.selector:
            self._covers.clear()
        self._budgets[budget.key] = budget
        self._by_namespace.setdefault(budget.namespace, {})[budget.key] = budget


def backoff(failures: int, first: timedelta, last: timedelta) -> timedelta:
    """Return the pause after so many failures before this one: doubling, never zero."""
    factor: int = 1 << min(failures, 16)
    return min(last, first * factor)
