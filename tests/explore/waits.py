"""Laws 17 and 18 against the truth: drains end, and no pod waits that could go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.record import ClaimKind, Record, record_of
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.explore.history import Broken

TENANT = "tenant"
"""The namespace of somebody who may create pods and budgets there, and nothing else."""

LONGEST = timedelta(minutes=3)
"""A message may be lost, and then a drain reads its pods again after half a minute; some reads may fail."""

FREE = "shop/web-"
"""Pods that nothing may hold: they have no budget, and another node always has room for them."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """What waits: on which node and for which pod, by UID, how long it may, and which law limits it."""

    node: str
    pod: str
    longest: timedelta
    law: str
    words: str


class Waits:
    """Since when each node is empty though its drain goes on, or has a pod that could go."""

    def __init__(self, world: World, counts: Counter[str]) -> None:
        """Watch this world from its beginning; `counts` counts the checks."""
        self._world = world
        self._counts = counts
        self._since: dict[_Wait, datetime] = {}
        self._clocks: dict[str, datetime] = {}
        self.denied: Callable[[], bool] = lambda: False
        """Whether a webhook denies the eviction of the tenant's pods."""

    def clock_changed(self) -> None:
        """Note that pods wait by another clock than the one by which the drains of now have begun."""
        self._clocks = {order.uid: order.since for order in self._world.drainer.orders.values()}

    def rests(self, policy: Settings) -> None:
        """Check what waits, once passes have nothing more to do."""
        now = self._world.now
        self._since = {one: self._since.get(one, now) for one in self._waiting(policy)}
        for one, since in self._since.items():
            self._counts[one.law] += 1
            if now - since > one.longest:
                raise Broken(one.law, f"{one.words} for {now - since}")

    def _waiting(self, policy: Settings) -> Iterator[_Wait]:
        orders = self._world.drainer.orders
        for node in self._world.cluster.nodes.values():
            order, since = orders.get(node.name), _drained_since(node)
            if order is None or order.uid != node.uid or order.since != since:
                # Something holds the drain, or it has no slot.
                continue
            if not policy.manages(node.labels):
                continue
            pods = self._world.cluster.pods_on(node.name)
            if not pods:
                yield _Wait(node.uid, "", LONGEST, "17", f"{node.name} is empty, and its drain goes on")
            if order.slots is not None and order.slots < len(orders):
                continue
            for pod in pods:
                limit = self._limit(pod, policy)
                if not pod.key.startswith(FREE) and self._clocks.get(order.uid) == order.since:
                    continue
                if limit is not None and pod.deleting_until is None and node.unschedulable:
                    law = "18" if any(other.namespace != pod.namespace for other in pods) else "17"
                    words = f"{pod.key} could go from {node.name}, and is not evicted"
                    yield _Wait(node.uid, pod.uid, limit, law, words)

    def _limit(self, pod: Pod, policy: Settings) -> timedelta | None:
        """Return how long a pod may stay, None if something that is not limited may hold it."""
        if pod.key.startswith(FREE):
            return LONGEST
        blocked = self.denied() or any(one.covers(pod) for one in self._world.cluster.budgets.values())
        if pod.namespace != TENANT or blocked:
            return None
        return max(policy.drain.pods_may_wait, longest_hold(policy)) + LONGEST


def longest_hold(policy: Settings) -> timedelta:
    """Return how long annotations of pods may hold something."""
    return policy.held_pods.longest if policy.held_pods is not None else timedelta()


def _drained_since(node: Node) -> datetime | None:
    """Return when the drain of a node began that goes on, None if there is none or it is one by hand."""
    record = record_of(node, DEFAULT_PREFIX)
    drain = record.drain if isinstance(record, Record) else None
    if drain is None or drain.drain.done is not None:
        return None
    return drain.drain.since if any(one.kind != ClaimKind.PERSON for one in drain.claims) else None
