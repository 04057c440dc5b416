"""surge: scale the pool of the node up by one, for its replacement."""

from __future__ import annotations

from reconciler.model.machine import ScaleUp
from reconciler.model.plan import Notice
from reconciler.model.record import Replacement
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("surge")
def surge(situation: Situation, effects: Effects) -> Effects:
    """Record the new count of the pool. `act` sends the request after that."""
    machine = situation.machine
    if machine is None or machine.pool is None or machine.pool.wanted is None:
        return effects
    wanted = machine.pool.wanted + 1
    before = effects.record.replacement
    retries = 0 if before is None or before.wanted is None else before.retries + 1
    asked = Replacement(situation.now.replace(microsecond=0), wanted, retries=retries)
    effects = replace(
        effects,
        record=replace(effects.record, replacement=asked),
        machine=ScaleUp(situation.node.name, machine, wanted),
    )
    message = f"scales {machine.pool} up to {wanted} machines, for the replacement of this node"
    return effects.with_notice(Notice("MaintenanceSurge", message))
