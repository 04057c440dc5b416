"""What node agents tell or hide in the histories of the exploration."""

from __future__ import annotations

import json
from collections.abc import Iterator

from reconciler.model.node import Node
from reconciler.settings.schema import Settings
from reconciler.simulation.platform import Reporter
from reconciler.simulation.world import World
from reconciler.sources.imds.settings import SECTION
from tests.explore.truth import Channel, announced
from tests.support.builders import IMDS


def channels(world: World, node: Node, policy: Settings) -> Iterator[Channel]:
    """Yield what the agent of a node tells."""
    if SECTION.of(policy).enabled:
        yield _channel(world, node)


def _channel(world: World, node: Node) -> Channel:
    agents = world.cluster.agents
    text = node.annotations.get(IMDS)
    if agents.problem or node.name in agents.not_ready:
        return Channel("imds", readable=False)
    if text is None:
        return Channel("imds", readable=agents.installed, installed=agents.installed)
    ids = _published(text)
    if ids is None:
        return Channel("imds", readable=False)
    told = [one for one in announced(world, node, "imds", Reporter.CONDITION) if one.what in ids]
    return Channel("imds", told=tuple(told), strange=len(told) < len(ids))


def _published(text: str) -> set[str] | None:
    """Return the IDs of the events in an annotation, None if nobody can read it."""
    try:
        return {str(one["EventId"]) for one in json.loads(text)["events"]}
    except (ValueError, TypeError, KeyError):
        return None
