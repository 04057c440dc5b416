"""Where the volumes of a pod can be mounted, by the node affinity of the PersistentVolumes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reconciler.features.readiness.found import Found
from reconciler.model.affinity import labels_for, meets
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.readiness import FindingCode, Severity
from reconciler.model.selector import Operator, Requirement
from reconciler.model.volume import Terms, Volume

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
        self._affinity = {(one.namespace, one.claim): one.affinity for one in volumes if one.affinity}
        self._by_label: dict[str, dict[str, list[Node]]] = {}
        self._matching: dict[Terms, Names] = {}
        self._zones = {node.zone for node in self._nodes.values() if node.zone}
        self._usable = frozenset(name for name, node in self._nodes.items() if not node.out_of_service)
        self._reach: dict[Names, _Reach] = {}

    def nodes_for(self, pod: Pod) -> Names | None:
        """Return the names of the nodes that can mount all volumes of the pod, None if all nodes can."""
        found: Names | None = None
        for claim in pod.claims:
            affinity = self._affinity.get((pod.namespace, claim))
            if affinity is not None:
                names = self._names(affinity)
                found = names if found is None else found & names
        return found

    def found(self, pod: Pod) -> Found | None:
        """Return what the volumes of a pod mean for its eviction, None if it can move."""
        names = self.nodes_for(pod)
        if names is None:
            return None
        reach = self._reach_of(names)
        if not reach.usable or reach.usable == {pod.node}:
            because = "no other node in service can mount its volumes, so it can't run until the node is back"
            remedy = "Use storage that other nodes can mount, or keep a replica of the data on another node."
            return Found(pod, FindingCode.VOLUME_NODE, Severity.OUTAGE, because, remedy)
        if len(self._zones) > 1 and len(reach.zones) == 1:
            because = "its volumes can be mounted in one zone only, so it can't move to another zone"
            remedy = "Keep room for it in the zone, or use storage that all zones can mount."
            return Found(pod, FindingCode.VOLUME_ZONE, Severity.NOTICE, because, remedy)
        return None

    def _reach_of(self, names: Names) -> _Reach:
        if names not in self._reach:
            zones = frozenset(self._nodes[name].zone for name in names)
            self._reach[names] = _Reach(names & self._usable, zones)
        return self._reach[names]

    def _names(self, affinity: Terms) -> Names:
        known = self._matching.get(affinity)
        if known is None:
            known = self._matching[affinity] = frozenset(
                node.name for term in affinity for node in self._candidates(term) if meets(node, (term,))
            )
        return known

    def _candidates(self, term: tuple[Requirement, ...]) -> Iterable[Node]:
        """Return the nodes that a term may match: those with a label that it names, else all."""
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
