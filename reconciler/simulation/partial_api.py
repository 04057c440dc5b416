"""The simulated cluster as a reader that leaves out the nodes without news, so that large fleets are fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from reconciler.model.node import Condition, Node, Wanted
from reconciler.model.pod import Pod
from reconciler.model.snapshot import Resting, Snapshot
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.passes.decide.seen import rests
from reconciler.passes.observe import wanted
from reconciler.passes.parts import Parts
from reconciler.passes.source import SourceContext
from reconciler.profiles.judging import judge
from reconciler.settings.schema import Settings
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.log import Happening

_Labels = tuple[tuple[str, str], ...]


class PartialApi(SimulatedApi):
    """SimulatedApi whose list of nodes has only those that a decision is about (port `PartialReader`).

    A pass over the list costs as much as there is news, however many nodes there are. Detectors write a
    heartbeat for each read, so that no reading becomes too old by itself.

    `news` becomes True with each change that a pass may act on; whoever runs the passes sets it back.
    `ignored` are the IDs of the events that the settings ignore: their nodes are left out, too.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        settings: Settings,
        parts: Parts,
        pods: Callable[[str], tuple[Pod, ...]],
        *,
        whole: bool = False,
    ) -> None:
        """Use this cluster, as these settings read it; nodes may be there already.

        `pods` are by node. With `whole`, no node is left out: passes decide the same, and take longer.
        """
        super().__init__(cluster)
        self._whole = whole
        self._pods = pods
        self._settings = settings
        self._parts = parts
        self._sources = parts.sources.switched_on(settings)
        self._wanted = wanted(settings, parts)
        self._busy: set[str] = set()
        self._known: dict[str, _Labels] = {}
        self.news = True
        self.ignored: set[str] = set()
        self._counts: Counter[_Labels] = Counter()
        self._examples: dict[_Labels, Node] = {}
        cluster.node_listeners.append(self._changed)
        cluster.log.listeners.append(self._heard)
        for node in cluster.nodes.values():
            self._changed(node)

    def nodes(self, wanted: Wanted) -> tuple[Node, ...]:
        """Return the nodes that a decision is about, sorted by name."""
        self._read("nodes")
        self.listed = tuple(self._shown(self.cluster.nodes[name], wanted) for name in sorted(self._busy))
        return self.listed

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of a node, or of all."""
        del placement
        self._read("pods", node or "")
        names = [node] if node is not None else sorted(self.cluster.nodes)
        return tuple(pod for name in names for pod in self._pods(name))

    def resting(self) -> tuple[Resting, ...]:
        """Return all other nodes: one of each set of labels, and how many there are."""
        return tuple(
            Resting(self._examples[labels], count) for labels, count in self._counts.items() if count
        )

    def _changed(self, node: Node) -> None:
        before = self._known.get(node.name)
        labels = tuple(sorted(node.labels.items())) if self._rests(node) and not self._whole else None
        if labels is not None and labels == before:
            return
        self.news = True
        self._leave(node.name)
        if labels is None:
            self._busy.add(node.name)
            return
        self._known[node.name] = labels
        self._counts[labels] += 1
        self._examples.setdefault(labels, node)

    def _heard(self, happening: Happening) -> None:
        if happening.what == "node gone":
            self.news = True
            self._leave(happening.node)

    def _leave(self, node: str) -> None:
        self._busy.discard(node)
        labels = self._known.pop(node, None)
        if labels is not None:
            self._counts[labels] -= 1

    def _rests(self, node: Node) -> bool:
        shown = self._shown(node, self._wanted)
        now = self.cluster.clock.now()
        agents, server = self.cluster.agents, self.cluster.server_version
        context = SourceContext(self._settings, now, agents, server=server)
        readings = tuple(reading for source in self._sources for reading in source.read(shown, context))
        found = assess(Snapshot((shown,), {node.name: readings}), now).of(node.name)
        judged = [judge(one, shown, self._settings, self.cluster.remediator, now) for one in found.events]
        if any(one.asks or one.times is not None or one.until is not None for one in judged):
            return False
        self.ignored.update(id_ for one in found.events for id_ in one.ids)
        return rests(shown, replace(found, events=()), self._settings, self._parts)

    def _beating(self, name: str, condition: Condition) -> Condition:
        found = super()._beating(name, condition)
        return found if found is condition else replace(found, heartbeat=self.cluster.clock.now())
