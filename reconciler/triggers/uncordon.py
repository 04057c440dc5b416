"""uncordon: undo our cordon and close the case."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.plan import Notice


@trigger("uncordon")
def uncordon(situation: Situation, effects: Effects) -> Effects:
    """Uncordon where the cordon is ours or adopted (law 2); the case ends either way."""
    record = effects.record
    undo = record.cordon.may_be_undone
    message = "maintenance is over: uncordoned" if undo else "maintenance is over: the cordon is not ours"
    effects = replace(effects, record=record.closed(), unschedulable=False if undo else None)
    return effects.told(Notice("MaintenanceDone", message))
