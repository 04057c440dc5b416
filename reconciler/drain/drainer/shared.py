"""What all drains share: the PodDisruptionBudgets, and the places for requests.

One eviction per budget is in flight. More at once cause refusals and conflicts on the server and are not
faster (docs/bench.md). The disruptions that a budget allows are those of the last watch event, minus the
evictions since then.

Which budgets select a pod is computed once. A budget that changes is matched with the pods of its namespace
that were asked about, and with no others: a tenant may change thousands of budgets without pause. While the
pods to move are of few namespaces, the budgets of others are not even watched.

A request that waits for somebody, such as an eviction whose webhook hangs, keeps its place for as long as the
API server waits. Nobody knows in advance which one will. So a node has at most as many places as it leaves
free, and so has a namespace, over all nodes and on each: the next one finds a place at once, whatever hangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct, field

from reconciler.drain.drainer.messages import Backoff, Limits
from reconciler.drain.refusal import MOST_COVERING, asks, asks_none, would_refuse
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetChange, BudgetGone, Listed
from reconciler.model.values import replace

REMEMBERED = 2000
"""Pods of one namespace whose budgets are remembered."""


class _Covered(Struct):
    """A pod, and the keys of the budgets that select it."""

    pod: Pod
    keys: dict[str, None]


class PdbTracker(Struct):
    """The budgets that are watched, by `namespace/name`.

    `known`: the budgets of the namespaces `only` are listed, those of all if it is empty. `broken`: a watch
    has failed, or says nothing.
    """

    known: bool = False
    broken: bool = False
    only: frozenset[str] = frozenset()
    _budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    _by_namespace: dict[str, dict[str, PodDisruptionBudget]] = field(default_factory=dict)
    _busy: dict[str, str] = field(default_factory=dict)
    _held: dict[str, set[str]] = field(default_factory=dict)
    _covers: dict[str, dict[str, _Covered]] = field(default_factory=dict)
    _ask_at: dict[str, datetime] = field(default_factory=dict)
    _refusals: dict[str, int] = field(default_factory=dict)

    @property
    def all(self) -> Mapping[str, PodDisruptionBudget]:
        """All budgets from the watches."""
        return self._budgets

    def knows(self, namespaces: frozenset[str]) -> bool:
        """Whether the budgets of these namespaces are listed."""
        return self.known and (not self.only or namespaces <= self.only)

    def see(self, change: BudgetChange) -> str | None:
        """Handle one watch event. Return the key of a budget if pods may no longer have to wait for it."""
        match change:
            case Listed():
                self.known, self.broken = True, False
                return None
            case BudgetGone(key):
                self._budgets.pop(key, None)
                namespace = key.partition("/")[0]
                self._by_namespace.get(namespace, {}).pop(key, None)
                for covered in self._covers.get(namespace, {}).values():
                    covered.keys.pop(key, None)
                return key
            case budget:
                self._put(budget)
                if budget.allowed <= 0:
                    return None
                self._ask_at.pop(budget.key, None)
                self._refusals.pop(budget.key, None)
                return budget.key

    def forget(self, *, broken: bool = False) -> None:
        """Drop all state, because a watch has ended."""
        self.known, self.broken = False, broken
        self._budgets.clear()
        self._by_namespace.clear()
        self._covers.clear()

    def covering(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that the server would check for the pod; of very many, some."""
        if asks_none(pod):
            return ()
        mine = self._by_namespace.get(pod.namespace, {})
        # This is called for every pod after every event, but selectors and labels rarely change.
        known = self._covers.setdefault(pod.namespace, {})
        covered = known.get(pod.uid)
        if covered is None or covered.pod.labels is not pod.labels:
            if len(known) >= REMEMBERED:
                known.clear()
            keys = dict.fromkeys(budget.key for budget in mine.values() if budget.covers(pod))
            covered = known[pod.uid] = _Covered(pod, keys)
        return tuple(mine[key] for key in islice(covered.keys, MOST_COVERING))

    def take(self, budgets: tuple[PodDisruptionBudget, ...], uid: str) -> bool:
        """Reserve all budgets for one eviction. Return False, and reserve none, if one is in use."""
        if any(self._busy.get(budget.key, uid) != uid for budget in budgets):
            return False
        for budget in budgets:
            self._busy[budget.key] = uid
            self._held.setdefault(uid, set()).add(budget.key)
        return True

    def is_busy(self, key: str) -> bool:
        """Whether a budget is reserved for an eviction."""
        return key in self._busy

    def held_by(self, uid: str) -> frozenset[str]:
        """Return the budgets that are reserved for the eviction of this pod."""
        return frozenset(self._held.get(uid, ()))

    def release(self, uid: str) -> None:
        """Release the budgets, because the eviction of this pod was answered."""
        for key in self._held.pop(uid, ()):
            del self._busy[key]

    def spent(self, pod: Pod) -> None:
        """Subtract a granted eviction from its budgets until the watch reports it."""
        for budget in self.covering(pod):
            if asks(budget, pod):
                self._put(replace(budget, allowed=max(0, budget.allowed - 1)))

    def exhausted(self, key: str, now: datetime, retry: Backoff) -> None:
        """Retry later, because the server refused an eviction for this budget."""
        refusals = self._refusals.get(key, 0)
        self._refusals[key] = refusals + 1
        self._ask_at[key] = now + retry.pause(refusals)
        if key in self._budgets:
            self._put(replace(self._budgets[key], allowed=0))

    def closed_until(
        self, budget: PodDisruptionBudget, pod: Pod, now: datetime, last: timedelta
    ) -> datetime | None:
        """Return the time before which the server would refuse the eviction. None: try it now.

        The watch reports when a budget allows a disruption again. In case it misses that, the eviction is
        tried anyway after `last`. After a refusal the pause counts, whatever the last event said: the server
        knows better.
        """
        if not (would_refuse(budget, pod) or budget.key in self._refusals):
            return None
        ask_at = self._ask_at.setdefault(budget.key, now + last)
        return ask_at if ask_at > now else None

    def hurry(self, now: datetime) -> None:
        """Retry everything now, because the clock went back."""
        self._ask_at = {key: min(at, now) for key, at in self._ask_at.items()}

    def _put(self, budget: PodDisruptionBudget) -> None:
        former = self._budgets.get(budget.key)
        if former is None or former.selector != budget.selector:
            for covered in self._covers.get(budget.namespace, {}).values():
                if budget.covers(covered.pod):
                    covered.keys[budget.key] = None
                else:
                    covered.keys.pop(budget.key, None)
        self._budgets[budget.key] = budget
        self._by_namespace.setdefault(budget.namespace, {})[budget.key] = budget


class Places:
    """The writes in flight of all drains, by node and by namespace."""

    def __init__(self, limits: Limits) -> None:
        """Start with all places free: `limits.parallel` over all nodes, and `limits.per_node` on each."""
        self._limit, self._per_node = limits.parallel, limits.per_node
        self.one_at_a_time = False
        """Whether one write at a time tries whether the API server has places again."""

        self._nodes: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()
        self._here: Counter[tuple[str, str]] = Counter()
        self._taken = 0

    @property
    def _parallel(self) -> int:
        return 1 if self.one_at_a_time else self._limit

    def open_to(self, namespace: str) -> bool:
        """Whether a write for a pod of the namespace may be sent now from a node that has room."""
        return self._namespaces[namespace] < self._parallel - self._taken

    def has_room(self, node: str, namespace: str) -> bool:
        """Whether a write for a pod of the namespace on this node may be sent now."""
        free, free_here = self._parallel - self._taken, self._per_node - self._nodes[node]
        if free <= 0 or free_here <= 0:
            return False
        return (
            self._nodes[node] < free
            and self._namespaces[namespace] < free
            and self._here[node, namespace] < free_here
        )

    def take(self, node: str, namespace: str) -> None:
        """Take a place for a write that is sent."""
        self._count(node, namespace, 1)

    def release(self, node: str, namespace: str) -> None:
        """Give a place back, because the write was answered or not sent."""
        if self._here[node, namespace] > 0:
            self._count(node, namespace, -1)

    def _count(self, node: str, namespace: str, number: int) -> None:
        self._taken += number
        for counter, key in ((self._nodes, node), (self._namespaces, namespace)):
            counter[key] += number
            if not counter[key]:
                del counter[key]
        self._here[node, namespace] += number
        if not self._here[node, namespace]:
            del self._here[node, namespace]
