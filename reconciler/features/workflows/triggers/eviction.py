"""eviction: cordons, uncordons or drains the node, under the name that maintenance-controller has for it."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.features.workflows.triggers.cordon import cordoned
from reconciler.features.workflows.triggers.drain import drained
from reconciler.features.workflows.triggers.uncordon import uncordoned, upgrade
from reconciler.settings.sections.trigger_types import Eviction, EvictionAction


def _missing(config: Eviction, given: TriggerInput) -> str:
    return upgrade(config, given) if config.action is EvictionAction.UNCORDON else ""


@trigger_type("eviction", Eviction, _missing)
def eviction(config: Eviction, given: TriggerInput) -> Worked:
    """Do what the configuration says."""
    match config.action:
        case EvictionAction.CORDON:
            return cordoned(given)
        case EvictionAction.UNCORDON:
            return uncordoned(given)
        case EvictionAction.DRAIN:
            return drained(given)
