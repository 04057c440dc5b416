"""What a condition that the settings name tells in the histories of the exploration."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.explore.truth import CONDITION, DEADLOCK, Channel, Told


def channels(world: World, node: Node, policy: Settings) -> Iterator[Channel]:
    """Yield what the condition says, if the settings name it."""
    if DEADLOCK in policy.condition_types():
        yield _deadlock(node)


def _deadlock(node: Node) -> Channel:
    found = node.condition(DEADLOCK)
    if found is None:
        return Channel(CONDITION, readable=False, installed=False)
    told = (Told(CONDITION, DEADLOCK, Kind.UNKNOWN),) if found.status == "True" else ()
    return Channel(CONDITION, found.status != "Unknown", told)
