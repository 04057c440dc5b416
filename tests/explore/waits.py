"""Laws 17 and 18 against the truth: a drain ends when its node is empty, and no pod waits that could go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciler.model.record import State
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.explore.broken import Broken
from tests.laws import checked

LONGEST = timedelta(minutes=3)
"""A message may be lost, and then a drain reads its pods again after half a minute; some reads may fail."""

FREE = "shop/web-"
"""Pods that nothing may hold: they have no budget, and another node always has room for them."""


class Waits:
    """Since when each node is empty though its drain goes on, or has a pod that could go."""

    def __init__(self, world: World, counts: Counter[str]) -> None:
        """Watch this world from its beginning; `counts` counts the checks."""
        self._world = world
        self._counts = counts
        self._since: dict[tuple[str, str], datetime] = {}

    def rests(self, policy: Settings) -> None:
        """Check what waits, once passes have nothing more to do."""
        now, waiting = self._world.now, dict(self._waiting(policy))
        self._since = {key: self._since.get(key, now) for key in waiting}
        for key, since in self._since.items():
            self._counts["17"] += 1
            if now - since > LONGEST:
                law, words = waiting[key]
                raise Broken(law, f"{words} for {now - since}")

    def _waiting(self, policy: Settings) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
        """Yield each wait, by its node's UID and its pod's, with the law that limits it and in words."""
        orders = self._world.drainer.orders
        for node in self._world.cluster.nodes.values():
            case = checked.case_of(node)
            if case.state is not State.IN_MAINTENANCE or case.drain is None or case.drain.done is not None:
                continue
            order = orders.get(node.name)
            if order is None or order.uid != node.uid or not policy.manages(node.labels):
                continue
            pods = self._world.cluster.pods_on(node.name)
            if not pods:
                yield (node.uid, ""), ("17", f"{node.name} is empty, and its drain goes on")
            if order.slots is not None and order.slots < len(orders):
                continue
            for pod in pods:
                if pod.key.startswith(FREE) and pod.deleting_until is None and node.unschedulable:
                    law = "18" if any(other.namespace != pod.namespace for other in pods) else "17"
                    words = f"{pod.key} could go from {node.name}, and is not evicted"
                    yield (node.uid, pod.uid), (law, words)
