"""dismiss: ignore the events of the case, because someone uncordoned the node."""

from __future__ import annotations

from reconciler.model.plan import Notice, NoticeType
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("dismiss")
def dismiss(situation: Situation, effects: Effects) -> Effects:
    """Close the case and record its events, so that only a new event starts another case."""
    record = effects.record
    left = () if situation.case.over else record.events
    message = "someone uncordoned the node, so it is ignored until a new event"
    return replace(effects, record=record.closed(dismissed=left)).with_notice(
        Notice("MaintenanceStopped", message, NoticeType.WARNING)
    )
