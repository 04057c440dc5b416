"""cordon: makes the node unschedulable, and claims its cordon for the profile."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.model.record import Cordon
from reconciler.model.structs import replace
from reconciler.settings.sections.trigger_types import Cordoning


@trigger_type("cordon", Cordoning)
def cordon(config: Cordoning, given: TriggerInput) -> Worked:
    """Cordon the node. A cordon that is there is shared, and a foreign one stays after us (law 2)."""
    del config
    return cordoned(given)


def cordoned(given: TriggerInput) -> Worked:
    """Return the work with the node cordoned for the profile."""
    node, record = given.work.node, given.work.record
    whose = Cordon.OURS
    if record.cordon is not None and node.unschedulable:
        whose = record.cordon.whose
    elif node.unschedulable and not given.taken_over:
        whose = Cordon.FOREIGN
    return replace(
        given.work,
        node=replace(node, unschedulable=True),
        record=record.cordoned(whose, given.claim, given.now),
    )
