"""Whether a pod can run on another node, by what every pass knows of nodes: labels, taints and readiness.

What other nodes have free is not known here: that takes the pods of all nodes. Nodes that are alike count as
one, and a search ends at the first node that fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from reconciler.drain.room import unfit
from reconciler.model.node import Node
from reconciler.model.pod import Placement, Pod
from reconciler.model.snapshot import Resting
from reconciler.model.values import replace

MOST_LOOKS = 50_000
"""How often one pass compares a pod with a kind of nodes. After that nothing is said of more pods."""


class _Kind(Struct):
    """Nodes that are alike: one of them, whether their maintenance is now, and how many there are."""

    node: Node
    leaving: bool
    count: int = 0


class Elsewhere:
    """Finds pods whose replacements can run on no other node; it looks at a node once a question needs it."""

    def __init__(
        self,
        nodes: Iterable[Node],
        resting: Iterable[Resting],
        *,
        leaving: frozenset[str],
        labels: frozenset[str],
        most_looks: int = MOST_LOOKS,
    ) -> None:
        """Search these nodes, without those that are `leaving` because their maintenance is now.

        `labels` are the keys of the labels that were read. What a pod requires of others is taken as met.
        """
        self._unread = _counted(nodes, resting)
        self._leaving, self._labels, self._keys = leaving, labels, tuple(sorted(labels))
        self._left = most_looks
        self._kinds: dict[object, _Kind] = {}
        self._kind_of: dict[str, _Kind] = {}

    def nowhere(self, pod: Pod) -> str:
        """Return why a replacement of the pod can run on no other node.

        Empty: it can, nothing creates one, or it is not known.
        """
        if pod.owner is None or pod.placement is None:
            return ""
        placement = self._known(pod.placement)
        reasons: dict[int, str] = {}
        for kind in self._searched():
            if id(kind) not in reasons:
                self._left -= 1
                reasons[id(kind)] = _why_not(placement, kind)
            if self._left < 0 or (not reasons[id(kind)] and self._others(kind, pod.node)):
                return ""
        counted: Counter[str] = Counter()
        for kind in self._kinds.values():
            counted[reasons[id(kind)]] += self._others(kind, pod.node)
        ordered = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
        lines = ", ".join(f"{count} {why}" for why, count in ordered if count)
        return f"no other node takes it: {lines or 'there is none'}"

    def _searched(self) -> Iterator[_Kind]:
        """Yield each kind, and again once it has a second node: the first may be the pod's own."""
        yield from self._kinds.values()
        for node, count in self._unread:
            kind = self._kind_of[node.name] = self._kind(node)
            before, kind.count = kind.count, kind.count + count
            if before < 2:
                yield kind

    def _others(self, kind: _Kind, own: str) -> int:
        """Return how many nodes of the kind were read, without the pod's own."""
        return kind.count - (self._kind_of.get(own) is kind)

    def _kind(self, node: Node) -> _Kind:
        leaving = node.name in self._leaving
        labels = tuple(map(node.labels.get, self._keys))
        alike = (labels, node.taints, node.unschedulable, node.ready, leaving)
        return self._kinds.setdefault(alike, _Kind(node, leaving))

    def _known(self, placement: Placement) -> Placement:
        """Return what the placement requires of labels that were read."""
        selector, terms = placement.node_selector, placement.affinity
        if self._labels.issuperset((*selector, *(one.key for term in terms for one in term))):
            return placement
        known = [tuple(one for one in term if one.key in self._labels) for term in terms]
        # Any node may meet a term of unknown labels. No node meets one that was empty before.
        open_to_all = any(term and not left for term, left in zip(terms, known, strict=True))
        return replace(
            placement,
            node_selector={key: text for key, text in selector.items() if key in self._labels},
            affinity=() if open_to_all else tuple(known),
        )


def _counted(nodes: Iterable[Node], resting: Iterable[Resting]) -> Iterator[tuple[Node, int]]:
    yield from ((node, 1) for node in nodes)
    yield from ((one.node, one.count) for one in resting)


def _why_not(placement: Placement, kind: _Kind) -> str:
    """Return why the pod can't run on a node of this kind, empty if it can."""
    return unfit(placement, kind.node) or ("in maintenance" if kind.leaving else "")
