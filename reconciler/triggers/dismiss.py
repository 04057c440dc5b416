"""dismiss: ignore the events of the case, because somebody uncordoned the node."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.plan import Notice, NoticeType


@trigger("dismiss")
def dismiss(situation: Situation, effects: Effects) -> Effects:
    """Close the case and remember its events, so that only a new one opens another."""
    record = effects.record
    left = () if situation.case.over else record.events
    message = "somebody uncordoned the node: it is let be until a new event"
    return replace(effects, record=record.closed(dismissed=left)).told(
        Notice("MaintenanceStopped", message, NoticeType.WARNING)
    )
