"""acknowledgeDue: whether to ask Azure to start an event now."""

from __future__ import annotations

from reconciler.profiles.plugins import CheckResult, check, failed, passed
from reconciler.profiles.situation import Situation


@check("acknowledgeDue")
def acknowledge_due(situation: Situation) -> CheckResult:
    """Pass when every VM of an event that the settings acknowledge is a drained node (law 12)."""
    record = situation.record
    if record.drain is None or record.drain.done is None:
        return failed("the node is not drained yet", holds=False)
    refused = [f"event {one.id} is not acknowledged: {one.refusal}" for one in situation.held_back]
    if situation.to_acknowledge:
        ids = ", ".join(one.id for one in situation.to_acknowledge)
        return passed(f"every VM of event {ids} is drained", holds=False)
    if refused:
        return failed("; ".join(refused))
    return failed("there is no event to acknowledge", holds=False)
