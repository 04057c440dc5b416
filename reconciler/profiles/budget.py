"""The budget: how many nodes may be out of service at once, and which ones are.

Nodes in maintenance hold a place until it ends, whatever state they are in. Other nodes hold one while they
are cordoned, NotReady or tainted out of service, but not when they have been gone for a long time. A start on
a node that holds a place needs no second one; a start on any other node needs one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType

from msgspec import Struct

from reconciler.calendar.values import Limit
from reconciler.model.node import Node
from reconciler.model.plan import BudgetUse
from reconciler.model.problems import Faults, guarded
from reconciler.model.snapshot import Replaced, Resting
from reconciler.model.values import replace
from reconciler.settings.draining import Budget

_NAMED_AT_MOST = 3


class DisruptionBudget(Struct, frozen=True):
    """The places of one pass: which nodes hold one, and why.

    `take` returns the places after one more start. `eases_at` is when the first NotReady holder counts as
    gone for long (UTC), None if there is none.
    """

    settings: Budget
    fleet: int
    zones: Mapping[str, int]
    pools: Mapping[str, int]
    holders: Mapping[str, str]
    eases_at: datetime | None
    where: Mapping[str, tuple[str, str]]

    def take(self, node: Node, reason: str) -> DisruptionBudget:
        """Return the places with this node as a holder."""
        if node.name in self.holders:
            return self
        return replace(
            self,
            holders=MappingProxyType({**self.holders, node.name: reason}),
            where=MappingProxyType({**self.where, node.name: (node.zone, node.pool)}),
        )

    def beside(self, resting: Iterable[Resting]) -> DisruptionBudget:
        """Return the places of a fleet with these nodes, too, none of which holds a place."""
        fleet, zones, pools = self.fleet, dict(self.zones), dict(self.pools)
        for one in resting:
            fleet += one.count
            zones[one.node.zone] = zones.get(one.node.zone, 0) + one.count
            pools[one.node.pool] = pools.get(one.node.pool, 0) + one.count
        return replace(self, fleet=fleet, zones=zones, pools=pools)

    def refusals(self, node: Node) -> tuple[str, ...]:
        """Return why the node may not start, one reason for each limit; empty if it may."""
        if node.name in self.holders:
            return ()
        found = [self._refusal("maxUnavailable", self.settings.max_unavailable, self.fleet, self.holders)]
        if node.zone and self.settings.per_zone is not None:
            held = {name: why for name, why in self.holders.items() if self.where[name][0] == node.zone}
            total = self.zones.get(node.zone, 0)
            found.append(self._refusal(f"perZone in {node.zone}", self.settings.per_zone, total, held))
        if node.pool and self.settings.per_pool is not None:
            held = {name: why for name, why in self.holders.items() if self.where[name][1] == node.pool}
            total = self.pools.get(node.pool, 0)
            found.append(self._refusal(f"perPool in {node.pool}", self.settings.per_pool, total, held))
        return tuple(reason for reason in found if reason)

    def use(self) -> BudgetUse:
        """Return the fleet's budget for the report."""
        limit = self.settings.max_unavailable.of(self.fleet)
        return BudgetUse(limit, self.fleet, tuple(sorted(self.holders.items())))

    @staticmethod
    def _refusal(name: str, limit: Limit, total: int, held: Mapping[str, str]) -> str:
        places = limit.of(total)
        if len(held) < places:
            return ""
        if not held:
            return f"{name} is {limit}, so no node may start"
        named = [f"{node} ({why})" for node, why in sorted(held.items())]
        more = f" and {len(named) - _NAMED_AT_MOST} more" if len(named) > _NAMED_AT_MOST else ""
        return f"{name} is {places}, held by {', '.join(named[:_NAMED_AT_MOST])}{more}"


class _Seat(Struct, frozen=True):
    """One node in the budget: why it holds a place (empty: it holds none), and when that ends by itself."""

    zone: str
    pool: str
    because: str = ""
    eases_at: datetime | None = None


_UNKNOWN = _Seat("", "", "an error in this program")


def count_places(
    fleet: Iterable[Node],
    ours: Mapping[str, str],
    settings: Budget,
    now: datetime,
    replaced: Iterable[Replaced] = (),
    faults: Faults | None = None,
) -> DisruptionBudget:
    """Return which nodes of the fleet are out of service at `now`; `ours` are those in maintenance, and why.

    `replaced` are nodes that we deleted and whose replacements do not exist yet (`still_missing`). A node
    whose data ends in an error is one of `faults` and holds a place, because unknown is not healthy.
    """
    faults = Faults() if faults is None else faults
    zones: dict[str, int] = {}
    pools: dict[str, int] = {}
    holders: dict[str, str] = {}
    where: dict[str, tuple[str, str]] = {}
    leaving: list[datetime] = []
    there: set[str] = set()
    for node in fleet:
        there.add(node.name)
        seat = faults.of(
            node.name, "its place is not known", partial(_seat, node, ours, settings, now), _UNKNOWN
        )
        zones[seat.zone] = zones.get(seat.zone, 0) + 1
        pools[seat.pool] = pools.get(seat.pool, 0) + 1
        if seat.because:
            holders[node.name] = seat.because
            where[node.name] = (seat.zone, seat.pool)
            if seat.eases_at is not None:
                leaving.append(seat.eases_at)
    for one in replaced:
        if one.node not in there:
            holders[one.node] = "replaced by us; the new node is missing"
            where[one.node] = (one.zone, one.pool)
            leaving.append(one.at + settings.ignore.not_ready_for)
    eases_at = min(leaving, default=None)
    return DisruptionBudget(settings, len(there), zones, pools, MappingProxyType(holders), eases_at, where)


def _seat(node: Node, ours: Mapping[str, str], settings: Budget, now: datetime) -> _Seat:
    zone, pool = node.zone, node.pool
    if node.name in ours:
        # It comes back into service when its maintenance ends, and until then nobody else may take its place.
        return _Seat(zone, pool, ours[node.name])
    because = node.out_of_service
    if not because or _long_gone(node, settings, now):
        return _Seat(zone, pool)
    changed = node.ready_changed
    eases_at = None if node.ready or changed is None else changed + settings.ignore.not_ready_for
    return _Seat(zone, pool, because, eases_at)


def pool_of(node: Node) -> str:
    """Return the node's pool, empty if it can't be read: other nodes of a pool must not fail with it."""
    return guarded(f"node {node.name}: its pool is not known", lambda: node.pool, "")[0]


def still_missing(
    replaced: Sequence[Replaced],
    fleet: Iterable[Node],
    settings: Budget,
    now: datetime,
    resting: Iterable[Resting] = (),
) -> tuple[Replaced, ...]:
    """Return those without a replacement, except those that are gone for long or not gone yet.

    The number of nodes in a pool shows how many are missing. Which ones are missing does not matter.
    """
    if not replaced:
        return ()
    nodes = list(fleet)
    there = {node.uid for node in nodes}
    counts = Counter(pool_of(node) for node in nodes)
    for others in resting:
        counts[others.node.pool] += others.count
    waiting = [one for one in replaced if now - one.at < settings.ignore.not_ready_for]
    left: list[Replaced] = [one for one in waiting if one.uid in there]
    by_pool: dict[str, list[Replaced]] = {}
    for one in waiting:
        if one.uid not in there:
            by_pool.setdefault(one.pool, []).append(one)
    for pool, some in by_pool.items():
        # Nodes without a pool have nothing in common: none of them replaces another.
        there_now = counts[pool] if pool else 0
        missing = max(0, max(one.have for one in some) - there_now)
        # Replacements come in the order in which the nodes went.
        left += sorted(some, key=lambda one: (one.at, one.node))[max(0, len(some) - missing) :]
    return tuple(sorted(left, key=lambda one: (one.at, one.node)))


def _long_gone(node: Node, settings: Budget, now: datetime) -> bool:
    if settings.ignore.quarantined and node.is_quarantined:
        return True
    since = node.ready_changed
    return not node.ready and since is not None and now - since >= settings.ignore.not_ready_for
