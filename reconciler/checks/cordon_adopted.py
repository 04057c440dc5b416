"""cordonAdopted: whether the node carries a cordon of a tool that the settings adopt."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, check, failed, passed
from reconciler.engine.situation import Situation
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.settings.schema import Settings


def is_adoptable(node: Node, settings: Settings) -> bool:
    """Whether the node's cordon is mechanic's, by its label, and the settings say that it becomes ours."""
    ours = "mechanic" in settings.adopt
    return ours and node.unschedulable and node.labels.get(MECHANIC_LABEL, "").lower() == "true"


@check("cordonAdopted")
def cordon_adopted(situation: Situation) -> CheckResult:
    """Pass when there is such a cordon; a fact, nobody waits for it."""
    if is_adoptable(situation.node, situation.settings):
        reason = f"mechanic cordoned it (label {MECHANIC_LABEL}) and adopt names mechanic"
        return passed(reason, holds=False)
    return failed("no cordon to adopt", holds=False)
