"""uncordon: removes the profile's claims, and uncordons the node if nothing else claims the cordon."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.model.structs import replace
from reconciler.model.upgrades import upgrade_of
from reconciler.settings.sections.trigger_types import Cordoning


def upgrade(config: object, given: TriggerInput) -> str:
    """Return that AKS upgrades the node: it drains it by itself, and uncordons it afterwards."""
    del config
    node = given.work.node
    return upgrade_of(node.agent_pool) if node.in_upgrade else ""


@trigger_type("uncordon", Cordoning, upgrade)
def uncordon(config: Cordoning, given: TriggerInput) -> Worked:
    """Uncordon the node, unless another claim is left or the cordon is recorded as foreign (law 2)."""
    del config
    return uncordoned(given)


def uncordoned(given: TriggerInput) -> Worked:
    """Return the work without the profile's claims on the cordon and the drain."""
    node, before = given.work.node, given.work.record
    after = before.uncordoned(given.claim).undrained(given.claim)
    # A cordon without a record is one of maintenance-controller, in a cluster that has moved over.
    undo = before.cordon is None or (after.cordon is None and before.cordon.whose.may_be_undone)
    return replace(
        given.work,
        node=replace(node, unschedulable=False) if undo else node,
        record=after,
    )
