"""What people are shown, against the truth."""

from __future__ import annotations

from collections import Counter

from reconciler.features.publishing.settings import PUBLISH, Sign
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.explore.broken import Broken
from tests.explore.truth import KEYS, Truth


class Shown:
    """NodeMaintenances of nodes on which nothing is going on."""

    def __init__(self, world: World, truth: Truth, checked: Counter[str]) -> None:
        """Watch this world from its beginning; `checked` counts the checks."""
        self._world = world
        self._truth = truth
        self._checked = checked

    def rests(self, policy: Settings) -> None:
        """Check that an object is over once every source that it names says so, and the node has no case."""
        if Sign.NODE_MAINTENANCES not in PUBLISH.of(policy):
            return
        nodes = {node.uid: node for node in self._world.cluster.nodes.values()}
        for one in (self._world.cluster.maintenances or {}).values():
            node = nodes.get(one.uid)
            if one.finished is not None or node is None or KEYS.record in node.annotations:
                continue
            if not policy.manages(node.labels):
                continue
            self._checked["shown"] += 1
            channels = [each for each in self._truth.channels(node, policy) if each.name in one.sources]
            if all(each.readable and not each.strange and not each.told for each in channels):
                raise Broken(
                    "shown", f"{one.name} of {one.sources} is {one.state}, though they report nothing"
                )
