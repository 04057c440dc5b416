"""surge: ask the node's pool for the machine that will take the node's place."""

from __future__ import annotations

from dataclasses import replace

from reconciler.engine.plugins import trigger
from reconciler.engine.situation import Effects, Situation
from reconciler.model.machine import ScaleUp
from reconciler.model.plan import Notice
from reconciler.model.record import Replacement


@trigger("surge")
def surge(situation: Situation, effects: Effects) -> Effects:
    """Record to which number the pool is scaled up; act asks for it once that is written."""
    machine = situation.machine
    if machine is None or machine.pool is None or machine.pool.wanted is None:
        return effects
    wanted = machine.pool.wanted + 1
    asked = Replacement(situation.now.replace(microsecond=0), wanted)
    effects = replace(
        effects,
        record=replace(effects.record, replacement=asked),
        machine=ScaleUp(situation.node.name, machine, wanted),
    )
    message = f"asks {machine.pool} for {wanted} machines: one is to take this node's place"
    return effects.told(Notice("MaintenanceSurge", message))
