"""performMaintenance: start the maintenance that Azure offers for the drained node's VM."""

from __future__ import annotations

from reconciler.model.azure import PerformMaintenance, vm_of
from reconciler.model.plan import Notice
from reconciler.model.record import SelfService
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


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
