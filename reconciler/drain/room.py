"""Where pods could run: quantities of resources, and the room on other nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from reconciler.model.node import Node, Taint
from reconciler.model.pod import Placement, Pod, Toleration, meets
from reconciler.model.snapshot import Resting
from reconciler.model.values import replace

_FORM = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(10**power) for letter, power in zip("kMGTPE", range(3, 19, 3), strict=True)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}


# Thousands of pods have the same few requests.
@lru_cache(maxsize=4096)
def quantity(text: str) -> Fraction:
    """Parse a quantity such as 100m, 1.5Gi or 2e3. Raises ValueError for anything else."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    sign, digits, suffix, exponent = found.groups()
    value = Fraction(digits.rstrip(".") if digits.endswith(".") else digits)
    if suffix:
        value *= _SUFFIXES[suffix]
    elif exponent:
        value *= Fraction(10) ** int(exponent)
    return -value if sign == "-" else value


def total(requests: Iterable[Mapping[str, str]]) -> dict[str, Fraction]:
    """Return the sum of the requests of several containers. Raises ValueError for an invalid quantity."""
    sums: dict[str, Fraction] = {}
    for container in requests:
        for resource, text in container.items():
            sums[resource] = sums.get(resource, Fraction(0)) + quantity(text)
    return sums


_NAMED = 5


class Place(Struct):
    """A node, and what the requests of its pods leave free, by resource."""

    node: Node
    free: dict[str, Fraction]


def room(nodes: Iterable[Node], pods: Iterable[Pod], evictees: Sequence[Pod]) -> tuple[str, ...]:
    """Return the evictees without room on other nodes, and what is not known. Empty: room for all.

    `nodes` (with allocatable) and `pods` (with placement) are those of the cluster. The nodes of the
    evictees do not count.
    """
    leaving = {pod.node for pod in evictees}
    going = {pod.uid for pod in evictees}
    unknown: list[str] = []
    places = places_of([node for node in nodes if node.name not in leaving], pods, going, unknown)
    lines: list[str] = []
    sized = []
    for pod in evictees:
        try:
            sized.append((pod, needs_of(pod)))
        except ValueError as error:
            unknown.append(f"{pod.key}: {error}")
    for pod, needs in sorted(sized, key=lambda one: (-one[1]["cpu"], -one[1]["memory"], one[0].key)):
        reasons = Counter(_place(pod, needs, places))
        if "" in reasons:
            continue
        why = (
            ", ".join(f"{count} {why}" for why, count in sorted(reasons.items())) or "there is no other node"
        )
        lines.append(f"no node has room for {pod.key}: {why}")
    for what, keys in (
        ("requests and constraints", [pod.key for pod in evictees if pod.placement is None]),
        (
            "pod affinity or topology spread",
            [pod.key for pod in evictees if pod.placement is not None and pod.placement.topology],
        ),
        ("where the volumes can be mounted", [pod.key for pod in evictees if pod.spec.claims]),
    ):
        if keys:
            lines.append(f"not checked: {what} of {_some(sorted(keys))}")
    return (*lines, *(f"unknown: {text}" for text in unknown))


def tolerates(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Whether a pod tolerates all taints (k8s.io/component-helpers scheduling/corev1)."""
    return all(
        taint.effect == "PreferNoSchedule" or any(_tolerates(taint, toleration) for toleration in tolerations)
        for taint in taints
    )


def _tolerates(taint: Taint, toleration: Toleration) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    # An empty key is valid only with Exists.
    return bool(toleration.key) and toleration.value == taint.value


def selects(placement: Placement, node: Node) -> bool:
    """Whether the pod's node selector and required node affinity match the node."""
    if any(node.labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    return not placement.affinity or meets(node, placement.affinity)


def places_of(nodes: Iterable[Node], pods: Iterable[Pod], going: set[str], unknown: list[str]) -> list[Place]:
    """Return what is free on each node, sorted by name, without the pods whose UID is in `going`.

    A node or a pod with a quantity that can't be read is left out, and a line about it is added to `unknown`.
    """
    places: dict[str, Place] = {}
    for node in sorted(nodes, key=lambda node: node.name):
        try:
            free = {resource: quantity(text) for resource, text in node.allocatable.items()}
        except ValueError as error:
            unknown.append(f"node {node.name}: {error}")
            continue
        places[node.name] = Place(node, free)
    for pod in pods:
        place = places.get(pod.node)
        if place is None or pod.finished or pod.uid in going:
            continue
        try:
            take(place, needs_of(pod))
        except ValueError as error:
            unknown.append(f"{pod.key}: {error}")
    return list(places.values())


def needs_of(pod: Pod) -> dict[str, Fraction]:
    """Return what the scheduler counts: the sum of requests, and one pod.

    Raises ValueError for an invalid quantity.
    """
    requests = total(pod.placement.requests) if pod.placement is not None else {}
    return {"cpu": Fraction(0), "memory": Fraction(0), **requests, "pods": Fraction(1)}


def take(place: Place, needs: Mapping[str, Fraction]) -> None:
    """Count a pod with these needs on the node."""
    for resource, amount in needs.items():
        place.free[resource] = place.free.get(resource, Fraction(0)) - amount


def _place(pod: Pod, needs: Mapping[str, Fraction], places: list[Place]) -> list[str]:
    """Place the pod on the first node with room and return [""]. Else return the reason of each node."""
    reasons = []
    for place in places:
        why = obstacle(pod, needs, place)
        if not why:
            take(place, needs)
            return [""]
        reasons.append(why)
    return reasons


def obstacle(pod: Pod, needs: Mapping[str, Fraction], place: Place) -> str:
    """Return why the pod can't run on the node, as `without enough cpu`; empty if it can."""
    why = unfit(pod.placement or Placement(), place.node)
    short = lacking(needs, place) if not why else []
    return f"without enough {' and '.join(short)}" if short else why


def unfit(placement: Placement, node: Node) -> str:
    """Return why a pod can't run on the node, whatever is free there; empty if it can."""
    if node.unschedulable:
        return "cordoned"
    if not node.ready:
        return "not Ready"
    if not selects(placement, node):
        return "not matching its node selector or affinity"
    return "" if tolerates(node.taints, placement.tolerations) else "tainted"


def lacking(needs: Mapping[str, Fraction], place: Place) -> list[str]:
    """Return the resources of which the node has too little, sorted."""
    return [
        resource
        for resource, amount in sorted(needs.items())
        if amount > 0 and place.free.get(resource, Fraction(0)) < amount
    ]


def _some(keys: list[str]) -> str:
    more = len(keys) - _NAMED
    return ", ".join(keys[:_NAMED]) + (f" and {more} more" if more > 0 else "")


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
