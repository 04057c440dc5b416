"""Where pods could run: quantities of resources, and the room on other nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from reconciler.model.node import Node, Taint
from reconciler.model.pod import Placement, Pod, Toleration, meets

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
    lines += _not_judged(evictees)
    return (*lines, *(f"unknown: {text}" for text in unknown))


def tolerates(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Whether a pod tolerates all taints (k8s.io/component-helpers scheduling/corev1)."""
    return all(
        taint.effect == "PreferNoSchedule" or any(_tolerates(taint, one) for one in tolerations)
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


def _not_judged(evictees: Sequence[Pod]) -> list[str]:
    blind = sorted(pod.key for pod in evictees if pod.placement is None)
    bound = sorted(pod.key for pod in evictees if pod.placement is not None and pod.placement.topology)
    claims = sorted(pod.key for pod in evictees if pod.claims)
    return [
        f"not checked: {what} of {_some(keys)}"
        for what, keys in (
            ("requests and constraints", blind),
            ("pod affinity or topology spread", bound),
            ("where the volumes can be mounted", claims),
        )
        if keys
    ]


def _some(keys: list[str]) -> str:
    more = len(keys) - _NAMED
    return ", ".join(keys[:_NAMED]) + (f" and {more} more" if more > 0 else "")
