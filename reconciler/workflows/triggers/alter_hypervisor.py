"""alterHypervisor: not supported, so a chain with it never goes on."""

from __future__ import annotations

from dataclasses import replace

from reconciler.settings.sections.trigger_types import AlterHypervisor
from reconciler.workflows.trigger import TriggerInput, Worked, trigger_type

UNSUPPORTED = "the trigger alterHypervisor is not supported"


@trigger_type("alterHypervisor", AlterHypervisor)
def alter_hypervisor(config: AlterHypervisor, given: TriggerInput) -> Worked:
    """Keep the chain waiting, with the reason."""
    del config
    return replace(given.work, waits=UNSUPPORTED)
