"""taint: adds, changes or removes a taint of the node."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.model.node import Taint
from reconciler.model.structs import replace
from reconciler.settings.sections.trigger_types import AlterTaint


@trigger_type("taint", AlterTaint)
def taint(config: AlterTaint, given: TriggerInput) -> Worked:
    """Set or remove the taint with this key and effect. All others stay, in their order."""
    before = given.work.node.taints
    wanted = Taint(config.key, config.value, config.effect.value)
    if not config.remove and wanted in before:
        return given.work
    kept = tuple(one for one in before if (one.key, one.effect) != (wanted.key, wanted.effect))
    after = kept if config.remove else (*kept, wanted)
    return replace(given.work, node=replace(given.work.node, taints=after))
