"""leaveSurge: report a pool that keeps one machine too many when a case ends."""

from __future__ import annotations

from reconciler.model.plan import Notice, NoticeType
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("leaveSurge")
def leave_surge(situation: Situation, effects: Effects) -> Effects:
    """Drop the replacement. The pool is not scaled down, because this could delete any node."""
    asked = effects.record.replacement
    effects = replace(effects, record=replace(effects.record, replacement=None))
    if asked is None or asked.wanted is None or asked.removals:
        return effects
    machine = situation.machine
    pool = str(machine.pool) if machine is not None and machine.pool is not None else "its pool"
    message = (
        f"{pool} was scaled up to {asked.wanted} machines for this node, which is not replaced; scale it down"
    )
    return effects.with_notice(Notice("MaintenanceSurplus", message, NoticeType.WARNING))
