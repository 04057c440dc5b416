"""Explanations of what a rehearsal finds in a simulated world."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.model.errors import Unauthorized
from reconciler.model.explanation import Examination, NodeExplanation, PodExplanation
from reconciler.model.pod import Pod
from reconciler.model.reconciler import Reconciler
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.report.explain import explain_node, explain_pod, find_pod
from reconciler.report.explained import Explanation, as_text
from reconciler.report.values import Document
from reconciler.run import examine
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.support import builders


class Explained:
    """What is found in the world, without the reads that are refused.

    `reconciler` is what is known of the one that acts on the nodes.
    """

    def __init__(
        self,
        world: World,
        settings: str | Settings = "",
        refused: Collection[str] = (),
        reconciler: Reconciler | None = None,
    ) -> None:
        def refuse(call: Call) -> None:
            if call.what in refused:
                raise Unauthorized(f"403 {call.what}", status=403, needs=f"list {call.what}")

        world.api.before_read = refuse
        self.settings = builders.settings(settings) if isinstance(settings, str) else settings
        outside = world.outside
        if reconciler is not None:
            outside = replace(outside, reconciler=reconciler)
        self.found: Examination = examine(
            outside, self.settings, world.now, with_preview=True, also_pods=True
        )

    def node(self, name: str = "a") -> NodeExplanation:
        seen, now = self.found.snapshot, self.found.plan.now
        node = next(node for node in seen.nodes if node.name == name)
        return explain_node(node, self.found, assess(seen, now).of(name), self.settings, now)

    def pod(self, name: str = "web-1", namespace: str = "shop") -> PodExplanation:
        pod = find_pod(self.found.snapshot, namespace, name)
        assert pod is not None
        return explain_pod(pod, self._node_of(pod), self.found.snapshot)

    def _node_of(self, pod: Pod) -> NodeExplanation | None:
        exists = any(node.name == pod.node for node in self.found.snapshot.nodes)
        return self.node(pod.node) if exists else None

    def of(self, pod: str = "", node: str = "a") -> Explanation:
        """The explanation of the pod, or else of the node."""
        if not pod:
            return Explanation(self.found.plan, self.node(node))
        explained = self.pod(pod)
        return Explanation(self.found.plan, self._node_of(explained.pod), explained)

    def document(self, *, pod: str = "", node: str = "a") -> Document:
        return self.of(pod, node).document

    def text(self, width: int | None = None, *, pod: str = "", node: str = "a", wide: bool = False) -> str:
        return as_text(self.of(pod, node), width, wide=wide)
