"""giveUp: bring the node back without the maintenance that we requested and did not get."""

from __future__ import annotations

from reconciler.model.plan import Notice, NoticeType
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("giveUp")
def give_up(situation: Situation, effects: Effects) -> Effects:
    """Undo our cordon and ignore the event: Azure does it in its own window, and reports that again."""
    record = effects.record
    undo = record.may_uncordon
    closed = record.closed(dismissed=record.events)
    attempts = record.self_service.attempt if record.self_service else 0
    message = (
        f"Azure did not do its maintenance after {attempts} requests, so the node is uncordoned without it"
    )
    effects = replace(effects, record=closed, unschedulable=False if undo else None)
    return effects.with_notice(Notice("MaintenanceGivenUp", message, NoticeType.WARNING))
