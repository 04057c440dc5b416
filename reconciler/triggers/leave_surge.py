"""leaveSurge: report a pool that is left with one machine too many when a case ends."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.plan import Notice, NoticeType


@trigger("leaveSurge")
def leave_surge(situation: Situation, effects: Effects) -> Effects:
    """Forget the replacement. A pool that was scaled up stays so: scaling it down could delete any node."""
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
