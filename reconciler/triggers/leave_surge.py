"""leaveSurge: say so where a case ends with a machine too many."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.plan import Notice, NoticeType


@trigger("leaveSurge")
def leave_surge(situation: Situation, effects: Effects) -> Effects:
    """Forget the replacement; a pool that was raised stays so, since lowering it could take any node."""
    asked = effects.record.replacement
    effects = replace(effects, record=replace(effects.record, replacement=None))
    if asked is None or asked.wanted is None or asked.removals:
        return effects
    machine = situation.machine
    pool = str(machine.pool) if machine is not None and machine.pool is not None else "its pool"
    message = (
        f"{pool} was raised to {asked.wanted} machines for this node's sake, which stays now: lower it again"
    )
    return effects.told(Notice("MaintenanceSurplus", message, NoticeType.WARNING))
