"""alterLabel: adds, changes or removes a label of the node."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.model.structs import replace
from reconciler.settings.sections.trigger_types import AlterLabel


@trigger_type("alterLabel", AlterLabel)
def alter_label(config: AlterLabel, given: TriggerInput) -> Worked:
    """Set or remove the label."""
    labels = {key: value for key, value in given.work.node.labels.items() if key != config.key}
    if not config.remove:
        labels[config.key] = config.value
    return replace(given.work, node=replace(given.work.node, labels=labels))
