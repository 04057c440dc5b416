"""affinity: whether nodes without pods that prefer operational nodes go first.

Pods that prefer operational nodes move to nodes that were maintained already if the others go first.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import partial

from reconciler.features.workflows.input import CheckInput, Fleet
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import Needs
from reconciler.model.pod import Pod
from reconciler.model.record import State
from reconciler.model.selector import Operator, Requirement
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import AffinityCheck


def _needs(_config: AffinityCheck) -> Needs:
    return Needs(all_pods=True)


@check_type("affinity", AffinityCheck, _needs)
def affinity(config: AffinityCheck, given: CheckInput) -> CheckResult:
    """Pass unless this node has such a pod, and another node that requires maintenance has none.

    Only nodes with the same profile are compared. It has an answer in the state maintenance-required only.
    """
    if given.state is not State.REQUIRED:
        return unknown(f"the check affinity is for the state {State.REQUIRED}; this one is {given.state}")
    key = ("affinity", given.profile)
    operational = given.members.once(key, partial(_operational, given.profile, given.members))
    if config.min_operational and operational >= config.min_operational:
        return passed(f"{operational} nodes are operational, and {config.min_operational} are enough")
    if given.read.unread_pods:
        return unknown(f"the pods can't be read: {given.read.unread_pods}")
    wanted = Requirement(given.keys.workflow_state, Operator.IN, (State.OPERATIONAL.value,))
    choosy = given.read.of_pods(("affinity", wanted), partial(_nodes_with, wanted, given.read.pods))
    if given.node.name not in choosy:
        return passed("no pod of the node prefers operational nodes")
    key = ("affinity first", given.profile)
    first = given.members.once(key, partial(_first, given.profile, given.members, choosy))
    if first:
        return failed(f"pods of the node prefer operational nodes; node {first} has none, and goes first")
    return passed("every other node that requires maintenance has pods that prefer operational nodes, too")


def _operational(profile: str, members: Fleet) -> int:
    """Return how many nodes with the profile are operational."""
    found = (member.data.profiles.get(profile) for member in members)
    return sum(one is not None and one.current is State.OPERATIONAL for one in found)


def _first(profile: str, members: Fleet, choosy: Container[str]) -> str:
    """Return the first node that requires maintenance and has no such pod, empty if there is none."""
    for member in members:
        data = member.data.profiles.get(profile)
        if data is not None and data.current is State.REQUIRED and member.node.name not in choosy:
            return member.node.name
    return ""


def _nodes_with(wanted: Requirement, pods: Mapping[str, tuple[Pod, ...]]) -> frozenset[str]:
    """Return the names of the nodes with a pod that prefers operational nodes."""
    return frozenset(name for name, found in pods.items() if any(_prefers(pod, wanted) for pod in found))


def _prefers(pod: Pod, wanted: Requirement) -> bool:
    return not pod.finished and pod.placement is not None and wanted in pod.placement.prefers
