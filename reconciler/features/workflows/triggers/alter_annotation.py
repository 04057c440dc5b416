"""alterAnnotation: adds, changes or removes an annotation of the node."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.model.structs import replace
from reconciler.settings.sections.trigger_types import AlterAnnotation


@trigger_type("alterAnnotation", AlterAnnotation)
def alter_annotation(config: AlterAnnotation, given: TriggerInput) -> Worked:
    """Set or remove the annotation."""
    annotations = {key: text for key, text in given.work.node.annotations.items() if key != config.key}
    if not config.remove:
        annotations[config.key] = config.value
    return replace(given.work, node=replace(given.work.node, annotations=annotations))
