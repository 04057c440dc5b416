"""Places for requests in flight: each node, and each namespace, leaves places free for others.

A request that waits for somebody, such as an eviction whose webhook hangs, keeps its place for as long as the
API server waits. Nobody knows in advance which one will. So a node has at most as many places as it leaves
free, and so has a namespace, over all nodes and on each: the next one finds a place at once, whatever hangs.
"""

from __future__ import annotations

from collections import Counter

from reconciler.drain.drainer.messages import Limits


class Places:
    """The writes in flight of all drains, by node and by namespace."""

    def __init__(self, limits: Limits) -> None:
        """Start with all places free: `limits.parallel` over all nodes, and `limits.per_node` on each."""
        self._parallel, self._per_node = limits.parallel, limits.per_node
        self._nodes: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()
        self._here: Counter[tuple[str, str]] = Counter()
        self._taken = 0

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
