"""cordonAdopted: whether the node has a cordon to take over, without a record of ours."""

from __future__ import annotations

from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation
from reconciler.settings.schema import Settings
from reconciler.settings.sections.others import Adoptable


def is_adoptable(node: Node, settings: Settings) -> bool:
    """Whether the node has our cordon without its record, or that of mechanic, and the settings adopt it."""
    if node.cordoned_by_us:
        return node.unschedulable
    adopts = Adoptable.MECHANIC in settings.adopt
    return adopts and node.unschedulable and node.labels.get(MECHANIC_LABEL, "").lower() == "true"


@check("cordonAdopted")
def cordon_adopted(situation: Situation) -> CheckResult:
    """Pass when there is such a cordon. It holds nothing."""
    if situation.node.cordoned_by_us and situation.node.unschedulable:
        return passed("the reconciler cordoned the node, and somebody removed its record", holds=False)
    if is_adoptable(situation.node, situation.settings):
        reason = f"mechanic cordoned the node (label {MECHANIC_LABEL}), and adopt includes mechanic"
        return passed(reason, holds=False)
    return failed("no cordon to adopt", holds=False)
