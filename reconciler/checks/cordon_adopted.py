"""cordonAdopted: whether the node carries a cordon of a tool that the settings adopt."""

from __future__ import annotations

from reconciler.engine.situation import Situation
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.model.plan import CheckAnswer, Verdict
from reconciler.settings.schema import Settings


def is_adoptable(node: Node, settings: Settings) -> bool:
    """Whether the node's cordon is mechanic's, by its label, and the settings say that it becomes ours."""
    ours = "mechanic" in settings.adopt
    return ours and node.unschedulable and node.labels.get(MECHANIC_LABEL, "").lower() == "true"


def cordon_adopted(situation: Situation) -> CheckAnswer:
    """Pass when there is such a cordon; a fact, nobody waits for it."""
    if is_adoptable(situation.node, situation.settings):
        reason = f"mechanic cordoned it (label {MECHANIC_LABEL}) and adopt names mechanic"
        return CheckAnswer("cordonAdopted", Verdict.PASSED, reason, holds=False)
    return CheckAnswer("cordonAdopted", Verdict.FAILED, "no cordon to adopt", holds=False)
