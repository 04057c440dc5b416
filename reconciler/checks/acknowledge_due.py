"""acknowledgeDue: whether Azure is to be told that an event may start now."""

from __future__ import annotations

from reconciler.engine.situation import Situation
from reconciler.model.plan import CheckAnswer, Verdict

NAME = "acknowledgeDue"


def acknowledge_due(situation: Situation) -> CheckAnswer:
    """Pass when every VM of an event that the settings want acknowledged is a drained node (law 12)."""
    record = situation.record
    if record.drain is None or record.drain.done is None:
        return CheckAnswer(NAME, Verdict.FAILED, "the node is not drained yet", holds=False)
    refused = [f"event {one.id} is not acknowledged: {one.refusal}" for one in situation.held_back]
    if situation.to_acknowledge:
        ids = ", ".join(one.id for one in situation.to_acknowledge)
        return CheckAnswer(NAME, Verdict.PASSED, f"every VM of event {ids} is drained", holds=False)
    if refused:
        return CheckAnswer(NAME, Verdict.FAILED, "; ".join(refused))
    return CheckAnswer(NAME, Verdict.FAILED, "nothing is to be acknowledged", holds=False)
