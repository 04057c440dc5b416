"""adopt: take over another tool's cordon."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.plan import Notice
from reconciler.model.record import Cordon


@trigger("adopt")
def adopt(situation: Situation, effects: Effects) -> Effects:
    """Make mechanic's cordon ours, and remove its label, so that a mechanic still running ignores the node.

    It starts no drain: the checks of every start decide about that (`drainDue`).
    """
    del situation
    record = replace(effects.record, cordon=Cordon.ADOPTED_MECHANIC)
    effects = replace(effects, record=record, labels={**effects.labels, MECHANIC_LABEL: None})
    return effects.with_notice(Notice("MaintenanceAdopted", "adopted the cordon of mechanic"))
