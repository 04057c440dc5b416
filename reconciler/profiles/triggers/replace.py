"""replace: delete the machine of the drained node, so that a new one comes."""

from __future__ import annotations

from reconciler.model.machine import Remove
from reconciler.model.plan import Notice
from reconciler.model.record import Replacement
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("replace")
def replace_machine(situation: Situation, effects: Effects) -> Effects:
    """Record the deletion. `act` sends the request to the machine provider after that."""
    machine = situation.machine
    if machine is None or machine.pool is None:
        return effects
    before = effects.record.replacement or Replacement(situation.now)
    asked = replace(before, asked=situation.now.replace(microsecond=0), removals=before.removals + 1)
    pool, lower = machine.pool, None
    if before.wanted is not None and not pool.lowered_by_deletion:
        # Do not lower a count that someone else has changed since.
        lower = before.wanted - 1 if pool.wanted == before.wanted else None
    effects = replace(
        effects,
        record=replace(effects.record, replacement=asked),
        machine=Remove(situation.node.name, machine, lower),
    )
    again = f" (attempt {asked.removals})" if asked.removals > 1 else ""
    message = f"deletes its machine; {pool} creates a new one{again}"
    return effects.with_notice(Notice("MaintenanceReplacing", message))
