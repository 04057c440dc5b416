"""What all sources report about the nodes, joined."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.event import Answer, MaintenanceEvent, Reading


class NodeAssessment(Struct, frozen=True):
    """One node's events, and the answer of each source; stale answers are unknown.

    `problem` is set if an error in this program kept the node from being assessed.
    """

    events: tuple[MaintenanceEvent, ...] = ()
    readings: tuple[Reading, ...] = ()
    problem: str = ""

    def answer(self, source: str) -> Answer | None:
        """The source's answer, None if the source is disabled."""
        return next((reading.answer for reading in self.readings if reading.source == source), None)


_NOTHING = NodeAssessment()


class Assessment(Struct, frozen=True):
    """The assessments of the nodes with any, by name. `notes` are about the whole cluster."""

    nodes: Mapping[str, NodeAssessment] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of(self, node: str) -> NodeAssessment:
        """The node's assessment, an empty one if there is none."""
        return self.nodes.get(node, _NOTHING)
