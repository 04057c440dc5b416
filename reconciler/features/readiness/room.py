"""Whether the pods of a node fit elsewhere, with their volumes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from reconciler.drain.room import Place, needs_of, obstacle, places_of, selects, tolerates
from reconciler.features.readiness.findings import PodFinding
from reconciler.model.findings import FindingCode, Severity
from reconciler.model.node import Node
from reconciler.model.pod import Placement, Pod, Terms, Volume, labels_for, meets
from reconciler.model.selector import Operator, Requirement

Names = frozenset[str]


class _Reach(NamedTuple):
    """Of some nodes: those in service, and the zones of all."""

    usable: Names
    zones: Names


class Mounts:
    """On which nodes volumes can be mounted: answers are kept, because many volumes have one affinity."""

    def __init__(self, volumes: Iterable[Volume], nodes: Iterable[Node]) -> None:
        """Take the bound volumes and all nodes of the cluster."""
        self._nodes = {node.name: node for node in nodes}
        self._affinity = {
            (volume.namespace, volume.claim): volume.affinity for volume in volumes if volume.affinity
        }
        self._by_label: dict[str, dict[str, list[Node]]] = {}
        self._matching: dict[Terms, Names] = {}
        self._zones = {node.zone for node in self._nodes.values() if node.zone}
        self._usable = frozenset(name for name, node in self._nodes.items() if not node.out_of_service)
        self._reach: dict[Names, _Reach] = {}

    def nodes_for(self, pod: Pod) -> Names | None:
        """Return the names of the nodes that can mount all volumes of the pod, None if all nodes can."""
        found: Names | None = None
        for claim in pod.spec.claims:
            affinity = self._affinity.get((pod.namespace, claim))
            if affinity is not None:
                names = self._names(affinity)
                found = names if found is None else found & names
        return found

    def found(self, pod: Pod) -> PodFinding | None:
        """Return what the volumes of a pod mean for its eviction, None if it can move."""
        names = self.nodes_for(pod)
        if names is None:
            return None
        reach = self._reach.get(names)
        if reach is None:
            zones = frozenset(self._nodes[name].zone for name in names)
            reach = self._reach[names] = _Reach(names & self._usable, zones)
        if not reach.usable or reach.usable == {pod.node}:
            because = "no other node in service can mount its volumes, so it can't run until the node is back"
            remedy = "Use storage that other nodes can mount, or keep a replica of the data on another node."
            return PodFinding(pod, FindingCode.VOLUME_NODE, Severity.OUTAGE, because, remedy)
        if len(self._zones) > 1 and len(reach.zones) == 1:
            because = "its volumes can be mounted in one zone only, so it can't move to another zone"
            remedy = "Keep room for it in the zone, or use storage that all zones can mount."
            return PodFinding(pod, FindingCode.VOLUME_ZONE, Severity.NOTICE, because, remedy)
        return None

    def _names(self, affinity: Terms) -> Names:
        known = self._matching.get(affinity)
        if known is None:
            known = self._matching[affinity] = frozenset(
                node.name for term in affinity for node in self._candidates(term) if meets(node, (term,))
            )
        return known

    def _candidates(self, term: tuple[Requirement, ...]) -> Iterable[Node]:
        exact = next((one for one in term if one.operator == Operator.IN), None)
        if exact is None:
            return self._nodes.values()
        if exact.key not in self._by_label:
            by_value = self._by_label[exact.key] = {}
            for node in self._nodes.values():
                value = labels_for(node, exact.key).get(exact.key)
                if value is not None:
                    by_value.setdefault(value, []).append(node)
        found = self._by_label[exact.key]
        return [node for value in dict.fromkeys(exact.values) for node in found.get(value, ())]


MOST_LOOKS = 2_000_000
"""How often a pod is compared with a node, for all nodes together: a few seconds."""

MOST_EXPLAINED = 200_000
"""How often a pod is compared with a node to count the reasons why it has no room."""

_NANO = 10**9
"""The smallest part of a quantity in Kubernetes. Integers are several times as fast as fractions."""

_REMEDY = (
    "Add nodes on which it can run, lower its requests, or check that an autoscaler may add a node for it."
)

Amounts = tuple[tuple[str, int], ...]


class _Shape(NamedTuple):
    """What decides where a pod has room. `amounts` are its requests; `mounts` None: on every node."""

    amounts: Amounts
    node_selector: tuple[tuple[str, str], ...]
    constraints: tuple[object, ...]
    mounts: frozenset[str] | None

    @property
    def cpu(self) -> int:
        return dict(self.amounts)["cpu"]


class _Free(NamedTuple):
    """A place, and what is free there, in billionths."""

    place: Place
    amounts: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.place.node.name


class _Fitting:
    """The places that have room for one pod of a shape, found one by one and kept."""

    def __init__(self, places: Iterator[_Free]) -> None:
        self._found: list[_Free] = []
        self._rest = places

    def __iter__(self) -> Iterator[_Free]:
        at = 0
        while True:
            while at < len(self._found):
                yield self._found[at]
                at += 1
            following = next(self._rest, None)
            if following is None:
                return
            self._found.append(following)


class Shelter:
    """The free room of a cluster."""

    def __init__(
        self, nodes: Iterable[Node], pods: Iterable[Pod], mounts: Mounts, *, most_looks: int = MOST_LOOKS
    ) -> None:
        """Count what is free. `nodes` (with allocatable) and `pods` (with placement) are all of them."""
        self.unreadable: list[str] = []
        self._all = places_of(nodes, pods, set(), self.unreadable)
        usable = (one for one in self._all if one.node.ready and not one.node.unschedulable)
        free = (_Free(one, {key: math.floor(has * _NANO) for key, has in one.free.items()}) for one in usable)
        self._free = sorted(free, key=lambda one: (-one.amounts.get("cpu", 0), one.name))
        self._mounts = mounts
        self._fitting: dict[_Shape, _Fitting] = {}
        self._why: dict[_Shape, str] = {}
        self._left = most_looks
        self._explained = 0

    @property
    def exhausted(self) -> bool:
        """Whether the limit is reached, so that later pods were not judged."""
        return self._left <= 0

    def homeless(self, node: str, evictees: Sequence[Pod]) -> list[PodFinding]:
        """Return the pods of a node that would have no room on the other nodes."""
        sized: list[tuple[Pod, Mapping[str, Fraction]]] = []
        for pod in evictees if not self.exhausted else ():
            try:
                sized.append((pod, needs_of(pod)))
            except ValueError as error:
                self.unreadable.append(f"{pod.key}: {error}")
        taken: dict[str, Counter[str]] = {}
        lost: list[PodFinding] = []
        largest = sorted(sized, key=lambda pair: (-pair[1]["cpu"], -pair[1]["memory"], pair[0].key))
        for pod, needs in largest:
            placement = pod.placement or Placement()
            shape = _Shape(
                tuple(sorted((resource, math.ceil(amount * _NANO)) for resource, amount in needs.items())),
                tuple(sorted(placement.node_selector.items())),
                (placement.affinity, placement.tolerations),
                self._mounts.nodes_for(pod),
            )
            place = self._place(pod, shape, node, taken)
            if place is not None:
                taken.setdefault(place.name, Counter()).update(dict(shape.amounts))
            elif not self.exhausted:
                because = f"no other node has room for it{self._reasons(pod, needs, shape, node)}"
                lost.append(PodFinding(pod, FindingCode.NO_ROOM, Severity.OUTAGE, because, _REMEDY))
        return lost

    def _place(
        self, pod: Pod, shape: _Shape, node: str, taken: Mapping[str, Mapping[str, int]]
    ) -> _Free | None:
        """Return a place for the pod, None if there is none, or if the limit is reached.

        `taken` is what the other pods of its node have taken, by the name of the node that they go to.
        """
        found = self._fitting.get(shape)
        if found is None:
            found = self._fitting[shape] = _Fitting(self._places_for(pod.placement or Placement(), shape))
        for free in found:
            self._left -= 1
            if free.name != node and _fits(shape.amounts, free.amounts, taken.get(free.name, {})):
                return free
            if self.exhausted:
                return None
        return None

    def _places_for(self, placement: Placement, shape: _Shape) -> Iterator[_Free]:
        """Yield the places that have room for one such pod, those with the most free CPU first."""
        cpu = shape.cpu
        for free in self._free:
            self._left -= 1
            # All that follow have even less CPU.
            if self.exhausted or free.amounts.get("cpu", 0) < cpu:
                return
            node = free.place.node
            if (
                _fits(shape.amounts, free.amounts, {})
                and (shape.mounts is None or node.name in shape.mounts)
                and selects(placement, node)
                and tolerates(node.taints, placement.tolerations)
            ):
                yield free

    def _reasons(self, pod: Pod, needs: Mapping[str, Fraction], shape: _Shape, node: str) -> str:
        """Return how many other nodes are out of the question for which reason, empty after the limit."""
        if shape in self._why or self._explained >= MOST_EXPLAINED:
            return self._why.get(shape, "")
        counted: Counter[str] = Counter()
        for place in self._all:
            self._explained += 1
            cannot = shape.mounts is not None and place.node.name not in shape.mounts
            why = "not able to mount its volumes" if cannot else obstacle(pod, needs, place)
            if place.node.name != node:
                counted[why or "taken by other pods of its node"] += 1
        lines = [
            f"{count} {why}" for why, count in sorted(counted.items(), key=lambda one: (-one[1], one[0]))
        ]
        self._why[shape] = f": {', '.join(lines) or 'there is no other node'}"
        return self._why[shape]


def _fits(amounts: Amounts, free: Mapping[str, int], taken: Mapping[str, int]) -> bool:
    return all(
        amount <= 0 or free.get(resource, 0) - taken.get(resource, 0) >= amount
        for resource, amount in amounts
    )
