"""alterFinalizer: adds or removes a finalizer of the node."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.model.structs import replace
from reconciler.settings.sections.trigger_types import AlterFinalizer


@trigger_type("alterFinalizer", AlterFinalizer)
def alter_finalizer(config: AlterFinalizer, given: TriggerInput) -> Worked:
    """Add or remove the finalizer. All others stay, in their order."""
    before = given.work.node.finalizers
    after = tuple(one for one in before if one != config.key)
    if not config.remove:
        after = before if config.key in before else (*before, config.key)
    return replace(given.work, node=replace(given.work.node, finalizers=after))
