"""Which nodes the workflows leave alone until the node itself changes: passes need not look at them."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.features.workflows.configured import Workflows, workflows_of
from reconciler.features.workflows.data import DataUnreadable, from_annotation
from reconciler.features.workflows.settings import PROFILES
from reconciler.features.workflows.situation import WorkflowSituation
from reconciler.model.expression import names
from reconciler.model.limits import EARLIEST
from reconciler.model.node import Node
from reconciler.model.plan import Verdict
from reconciler.model.record import State
from reconciler.profiles.state_machine import Answers, verdicts_of
from reconciler.settings.schema import Settings


def settled(settings: Settings) -> Callable[[Node], bool]:
    """Return what says whether all workflows of a node are operational, and no step passes.

    All that has to follow from the node itself: the answer of a check that reads the time, other nodes or a
    service changes without the node, and is shown.
    """
    workflows, keys = workflows_of(PROFILES.of(settings)), settings.keys.names

    def is_settled(node: Node) -> bool:
        label = node.labels.get(keys.workflows, "")
        if workflows.unknown(label):
            return False
        profiles = workflows.selected(label)
        try:
            data = from_annotation(node.annotations.get(keys.workflow_data, ""))
        except DataUnreadable:
            return False
        situation = WorkflowSituation(node, data, "", State.OPERATIONAL, EARLIEST, EARLIEST, keys=keys)
        for name in profiles:
            kept = data.profiles.get(name)
            if kept is None or kept.is_entering or kept.current is not State.OPERATIONAL:
                return False
            if not _does_not_move(workflows, name, situation):
                return False
        return True

    return is_settled


def _does_not_move(workflows: Workflows, name: str, situation: WorkflowSituation) -> bool:
    rules = workflows.by_name[name].rules(State.OPERATIONAL)
    asked = {check for step in rules.transitions for check in names(step.check)}
    if rules.notify or not all(workflows.checks[check].type.alone for check in asked):
        return False
    verdicts = verdicts_of(rules, Answers(workflows.checks, situation))
    return all(verdict is Verdict.FAILED for _, verdict in verdicts)
