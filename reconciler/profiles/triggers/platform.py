"""Triggers that ask the platform for something."""

from __future__ import annotations

from reconciler.model.machine import PerformMaintenance, Remove, ScaleUp, vm_of
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.record import Replacement, SelfService
from reconciler.model.values import replace
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


@trigger("performMaintenance")
def perform_maintenance(situation: Situation, effects: Effects) -> Effects:
    """Record the request to Azure and the boot id before it; act sends it once that is written."""
    node, before = situation.node, effects.record.self_service
    vm = vm_of(node.provider_id)
    if vm is None:
        return effects
    attempt = before.attempt + 1 if before else 1
    asked = SelfService(
        situation.now.replace(microsecond=0), attempt, before.boot_id if before else node.boot_id
    )
    effects = replace(
        effects,
        record=replace(effects.record, self_service=asked),
        perform=PerformMaintenance(node.name, vm),
    )
    again = f" (attempt {attempt})" if attempt > 1 else ""
    return effects.with_notice(
        Notice("MaintenanceSelfService", f"asks Azure to do its maintenance now{again}")
    )


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
