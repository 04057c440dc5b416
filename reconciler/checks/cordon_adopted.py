"""cordonAdopted: whether the node has a cordon of a tool that the settings adopt."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.settings.schema import Settings
from reconciler.settings.sections.others import Adoptable


def is_adoptable(node: Node, settings: Settings) -> bool:
    """Whether the node has the cordon of mechanic, by its label, and the settings adopt it."""
    adopts = Adoptable.MECHANIC in settings.adopt
    return adopts and node.unschedulable and node.labels.get(MECHANIC_LABEL, "").lower() == "true"


@check("cordonAdopted")
def cordon_adopted(situation: Situation) -> CheckResult:
    """Pass when there is such a cordon. It holds nothing."""
    if is_adoptable(situation.node, situation.settings):
        reason = f"mechanic cordoned the node (label {MECHANIC_LABEL}), and adopt includes mechanic"
        return passed(reason, holds=False)
    return failed("no cordon to adopt", holds=False)
