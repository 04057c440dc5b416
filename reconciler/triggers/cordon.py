"""cordon: make the node unschedulable, and record whose cordon it is."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.plan import Notice
from reconciler.model.record import Cordon


@trigger("cordon")
def cordon(situation: Situation, effects: Effects) -> Effects:
    """Cordon the node. Share the cordon of another profile, and do not touch a foreign one (law 2)."""
    if situation.node.unschedulable:
        before = effects.record.node_cordon
        whose = Cordon.FOREIGN if before is Cordon.NONE else before
        return replace(effects, record=replace(effects.record, cordon=whose))
    because = "; ".join(dict.fromkeys(one.because for one in situation.asking))
    effects = replace(effects, unschedulable=True, record=replace(effects.record, cordon=Cordon.OURS))
    return effects.with_notice(Notice("MaintenanceCordon", f"cordoned: {because}"))
