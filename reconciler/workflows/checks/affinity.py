"""affinity: whether nodes without pods that prefer operational nodes go first.

Pods that prefer operational nodes move to nodes that were maintained already if the others go first.
"""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, failed, passed, unknown
from reconciler.model.check_reads import Needs
from reconciler.model.pod import Pod
from reconciler.model.record import State
from reconciler.model.selector import Operator, Requirement
from reconciler.settings.sections.check_types import AffinityCheck
from reconciler.workflows.input import CheckInput
from reconciler.workflows.plugins import check_type


def _needs(_config: AffinityCheck) -> Needs:
    return Needs(all_pods=True)


@check_type("affinity", AffinityCheck, _needs)
def affinity(config: AffinityCheck, given: CheckInput) -> CheckResult:
    """Pass unless this node has such a pod, and another node that requires maintenance has none.

    Only nodes with the same profile are compared. It has an answer in the state maintenance-required only.
    """
    if given.state is not State.REQUIRED:
        return unknown(f"the check affinity is for the state {State.REQUIRED}; this one is {given.state}")
    states = {
        member.node.name: member.data.profiles[given.profile].current
        for member in given.members
        if given.profile in member.data.profiles
    }
    operational = sum(state is State.OPERATIONAL for state in states.values())
    if config.min_operational and operational >= config.min_operational:
        return passed(f"{operational} nodes are operational, and {config.min_operational} are enough")
    if given.read.unread_pods:
        return unknown(f"the pods can't be read: {given.read.unread_pods}")
    wanted = Requirement(given.keys.workflow_state, Operator.IN, (State.OPERATIONAL.value,))
    if not _has(given, given.node.name, wanted):
        return passed("no pod of the node prefers operational nodes")
    for name, state in states.items():
        if name != given.node.name and state is State.REQUIRED and not _has(given, name, wanted):
            return failed(
                f"pods of the node prefer operational nodes, and node {name} has none: it goes first"
            )
    return passed("every other node that requires maintenance has pods that prefer operational nodes, too")


def _has(given: CheckInput, node: str, wanted: Requirement) -> bool:
    return any(_prefers(pod, wanted) for pod in given.read.pods.get(node, ()))


def _prefers(pod: Pod, wanted: Requirement) -> bool:
    return not pod.finished and pod.placement is not None and wanted in pod.placement.prefers
