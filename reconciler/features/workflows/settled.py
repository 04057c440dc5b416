"""Which nodes the workflows leave alone until the node itself changes: passes need not look at them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.features.workflows.configured import workflows_of
from reconciler.features.workflows.data import DataUnreadable, from_annotation
from reconciler.features.workflows.settings import PROFILES
from reconciler.model.node import Node
from reconciler.model.plan import Verdict
from reconciler.model.record import State
from reconciler.profiles.state_machine import Answers, StateRules, verdicts_of
from reconciler.profiles.vocabulary import Check
from reconciler.settings.schema import Settings


def settled(settings: Settings) -> Callable[[Node], bool]:
    """Return what says whether all workflows of a node are operational, and no step passes.

    All that has to follow from the node itself: the answer of a check that reads the time, other nodes or a
    service changes without the node, and is shown.
    """
    workflows, keys = workflows_of(PROFILES.of(settings)), settings.keys.names
    # Unlike those of a pass, they raise.
    checks = {name: Check(name, check.type, check.config) for name, check in workflows.checks.items()}

    def is_settled(node: Node) -> bool:
        label = node.labels.get(keys.maintenance_profile, "")
        if workflows.unknown(label):
            return False
        profiles = workflows.selected(label)
        try:
            data = from_annotation(node.annotations.get(keys.maintenance_data, ""))
        except DataUnreadable:
            return False
        answers = Answers(checks, _NodeAlone(node))
        for name in profiles:
            kept = data.profiles.get(name)
            if kept is None or kept.is_entering or kept.current is not State.OPERATIONAL:
                return False
            if not _stays(workflows.by_name[name].rules(State.OPERATIONAL), answers):
                return False
        return True

    return is_settled


class _NodeAlone(Struct, frozen=True):
    """What a check may read whose answer changes only with the node. It has nothing else."""

    node: Node


def _stays(rules: StateRules, answers: Answers) -> bool:
    """Whether no step passes, and all answers follow from the node."""
    try:
        stays = all(verdict is Verdict.FAILED for _, verdict in verdicts_of(rules, answers))
    except AttributeError:
        # A check reads more: the time, other nodes or a service.
        stays = False
    return stays and not rules.notify
