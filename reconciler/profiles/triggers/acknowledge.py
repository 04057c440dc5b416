"""acknowledge: ask Azure, through the node agent, to start the event now."""

from __future__ import annotations

from reconciler.model.plan import Notice
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("acknowledge")
def acknowledge(situation: Situation, effects: Effects) -> Effects:
    """Record which events; the annotation that the agent reads follows from the record (`node_patch`)."""
    ids = tuple(one.id for one in situation.to_acknowledge)
    record = effects.record
    effects = replace(effects, record=replace(record, acknowledged=(*record.acknowledged, *ids)))
    message = f"every VM of event {', '.join(ids)} is drained, so Azure may start it now"
    return effects.with_notice(Notice("MaintenanceAcknowledged", message))
