"""Histories in which Azure schedules events for several VMs, and agents publish them."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.model.azure import vm_name
from tests.laws import checked
from tests.laws.histories import History
from tests.support.builders import IMDS
from tests.support.fakes.imds import Event


@dataclass(slots=True)
class Azure(History):
    """A history in which Azure schedules events for several VMs, and their agents publish what concerns each.

    The agents of the nodes that are `late` publish nothing new.
    """

    events: dict[str, Event] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)

    def publish(self) -> None:
        """Let the agents write what has changed."""
        from reconciler.sources.imds.scheduled_events import to_annotation

        document = {"Events": list(self.events.values())}
        for name, node in list(self.cluster.nodes.items()):
            vm = vm_name(node.provider_id)
            if vm is None or name in self.late or name in self.cluster.agents.not_ready:
                continue
            text = to_annotation(document, vm)
            if node.annotations.get(IMDS) != text and (IMDS in node.annotations or '"events":[]' not in text):
                self.cluster.annotate(name, IMDS, text)

    def acknowledged(self) -> dict[str, list[str]]:
        """What the agents of the nodes are asked to acknowledge."""
        return checked.acknowledged(self.cluster)

    def go_on(self, passes: int = 1) -> None:
        """Let the agents publish, then so many passes."""
        self.publish()
        for _ in range(passes):
            self.look()

    def wrongs(self) -> list[str]:
        """What is acknowledged and must not be."""
        return checked.wrongly_acknowledged(self.cluster, self.settings, self.now)
