"""What the sources say of the nodes, joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.event import Answer, MaintenanceEvent, Reading


@dataclass(frozen=True, slots=True)
class NodeAssessment:
    """One node's events, and each source's answer with stale ones made unknown."""

    events: tuple[MaintenanceEvent, ...] = ()
    readings: tuple[Reading, ...] = ()

    def answer(self, source: str) -> Answer | None:
        """The source's answer, None where it is switched off."""
        return next((reading.answer for reading in self.readings if reading.source == source), None)


@dataclass(frozen=True, slots=True)
class Assessment:
    """Every node that has something to say, by name; `notes` are for the cluster as a whole."""

    nodes: Mapping[str, NodeAssessment] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of(self, node: str) -> NodeAssessment:
        """That node's assessment, an empty one where nothing was said."""
        return self.nodes.get(node, NodeAssessment())
