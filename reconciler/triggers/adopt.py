"""adopt: take over another tool's cordon, and drain the node where an event still asks for it."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.plan import Notice
from reconciler.model.record import Cordon
from reconciler.triggers.start_drain import drain


@trigger("adopt")
def adopt(situation: Situation, effects: Effects) -> Effects:
    """Make mechanic's cordon ours, and remove its label, so that a mechanic still running ignores the node.

    A drain starts only if it may start now. Otherwise the node stays cordoned and waits.
    """
    record = replace(effects.record, cordon=Cordon.ADOPTED_MECHANIC)
    effects = replace(effects, record=record, labels={**effects.labels, MECHANIC_LABEL: None})
    effects = effects.with_notice(Notice("MaintenanceAdopted", "adopted the cordon of mechanic"))
    return drain(situation, effects) if any(one.may_start for one in situation.asking) else effects
