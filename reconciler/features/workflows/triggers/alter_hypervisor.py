"""alterHypervisor: sets fields in the spec of the node's Hypervisor."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.model.hypervisor import HypervisorWrite
from reconciler.model.structs import replace
from reconciler.settings.sections.trigger_types import AlterHypervisor


def _missing(config: AlterHypervisor, given: TriggerInput) -> str:
    """Return why the Hypervisor can't be changed: without it the chain does not begin."""
    del config
    return given.read.hypervisor(given.work.node.name)[1]


@trigger_type("alterHypervisor", AlterHypervisor, _missing)
def alter_hypervisor(config: AlterHypervisor, given: TriggerInput) -> Worked:
    """Set the fields that have other values. A chain that waits runs again, and then writes nothing."""
    found, why = given.read.hypervisor(given.work.node.name)
    if found is None:
        return replace(given.work, waits=why)
    before = given.work.hypervisor.fields if given.work.hypervisor is not None else {}
    wanted = {**before, **config.fields}
    fields = {key: value for key, value in wanted.items() if found.spec[key] != value}
    write = HypervisorWrite(found.name, found.uid, fields) if fields else None
    return replace(given.work, hypervisor=write)
