"""What node-problem-detectors tell or hide in the histories of the exploration."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.node import Node
from reconciler.settings.schema import Settings
from reconciler.simulation.api import HEARTBEAT
from reconciler.simulation.platform import Reporter
from reconciler.simulation.world import World
from reconciler.sources.condition.source import SECTION
from tests.explore.truth import Channel, announced
from tests.laws.histories import MAIN


def channels(world: World, node: Node, policy: Settings) -> Iterator[Channel]:
    """Yield what the detector of a node tells."""
    if SECTION.of(policy).enabled:
        yield _channel(world, node, policy)


def _channel(world: World, node: Node, policy: Settings) -> Channel:
    found = node.condition(MAIN)
    if found is None or found.status not in ("True", "False") or _is_silent(world, node, policy):
        return Channel("condition", readable=False, installed=found is not None)
    if found.status == "False":
        return Channel("condition")
    events = tuple(announced(world, node, "condition", Reporter.AGENT))
    told = tuple(one for one in events if found.message.endswith(f" {one.what}"))
    hidden = tuple(one for one in events if one not in told)
    return Channel("condition", told=told, hidden=hidden, strange=not told)


def _is_silent(world: World, node: Node, policy: Settings) -> bool:
    """Whether the detector is silent for so long that no clock takes it for alive."""
    since = world.api.silent_since.get(node.name)
    if since is None:
        return False
    age = min(world.now, world.ours.now()) - since
    return age > SECTION.of(policy).stale_after + HEARTBEAT
