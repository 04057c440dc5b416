"""The node agents of a simulated cluster: each publishes the events of its VM, and acknowledges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import ClassVar

from reconciler.model.node import Condition, Node
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.platform import Reporter, SimulatedPlatform
from reconciler.sources.imds.keys import ACKNOWLEDGED, PUBLISHED
from reconciler.sources.imds.scheduled_events import from_acknowledgement, to_annotation

ACKNOWLEDGES_AFTER = timedelta(seconds=10)
"""How long an agent takes to acknowledge an event in its node's annotation; Azure then starts the event."""


class PublishingAgents:
    """The agents of all nodes, with annotations under this prefix."""

    reporter = Reporter.AGENT
    quiet: ClassVar[tuple[Condition, ...]] = ()

    def __init__(self, cluster: SimulatedCluster, platform: SimulatedPlatform, prefix: str) -> None:
        self._cluster, self._platform, self._prefix = cluster, platform, prefix
        cluster.node_listeners.append(self._heed)

    def publish(self, node: str, vm: str, events: Sequence[Mapping[str, object]]) -> None:
        """Write the annotation; a node without events gets none."""
        key = PUBLISHED.below(self._prefix)
        if events or key in self._cluster.nodes[node].annotations:
            self._cluster.annotate(node, key, to_annotation({"Events": list(events)}, vm))

    def _heed(self, node: Node) -> None:
        """Acknowledge the events in a node's annotation, as its agent does: Azure then starts them early."""
        wanted = self._wanted(node)
        for event_id in self._platform.waiting(node.name) if wanted else ():
            if event_id.casefold() in wanted:
                acknowledge = partial(self._acknowledge, event_id, node.name)
                self._cluster.clock.after(ACKNOWLEDGES_AFTER, acknowledge)

    def _acknowledge(self, event_id: str, name: str) -> None:
        """Acknowledge an event once, if its node's annotation still names it: it starts on all its VMs."""
        node = self._cluster.nodes.get(name)
        if node is not None and event_id.casefold() in self._wanted(node):
            self._platform.start(event_id, name, because="acknowledged")

    def _wanted(self, node: Node) -> frozenset[str]:
        named = from_acknowledgement(node.annotations.get(ACKNOWLEDGED.below(self._prefix)))
        return frozenset(event_id.casefold() for event_id in named)


SIMULATED: Mapping[str, object] = {}
"""It asks no service."""

AGENTS = (PublishingAgents,)
