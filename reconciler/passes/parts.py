"""What takes part in passes beside the core."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from reconciler.model.machine import MachineRef
from reconciler.model.node import Node
from reconciler.model.ports import ClusterReader, Outside
from reconciler.model.problems import Gaps
from reconciler.model.snapshot import Snapshot
from reconciler.model.workflow import ReadForChecks
from reconciler.passes.feature import Beside, Feature, Fleet, NodeSigns, ObjectChanges, ReadObjects, all_signs
from reconciler.passes.source import Wants, all_wants
from reconciler.passes.sources import Sources
from reconciler.passes.standing import Standing
from reconciler.settings.schema import Settings


class Parts(Struct, frozen=True):
    """The sources and the features of a program. What all features give together is that of the fold."""

    sources: Sources
    features: tuple[Feature, ...] = ()

    def wants(self, settings: Settings) -> Wants:
        """Return what sources and features read."""
        of_features = (one.reads(settings) for one in self.features if one.reads)
        return all_wants([self.sources.wants(settings), *of_features])

    def machine_of(self, node: Node) -> MachineRef | None:
        """Return the machine of a node, None if no feature knows it."""
        found = (one.machine_of(node) for one in self.features if one.machine_of)
        return next((ref for ref in found if ref is not None), None)

    def read_checks(self, outside: Outside, settings: Settings) -> ReadForChecks:
        """Return what the checks of workflows need, empty without workflows."""
        found = (one.read_checks(outside, settings) for one in self.features if one.read_checks)
        return next(found, ReadForChecks())

    def read_objects(
        self, reader: ClusterReader, settings: Settings, earlier: Collection[str], gaps: Gaps
    ) -> ReadObjects:
        """Return the objects that features show."""
        found: dict[str, Sequence[Any]] = {}
        problems: list[str] = []
        for one in self.features:
            if one.read_objects:
                objects, unread = one.read_objects(reader, settings, earlier, gaps)
                found |= objects
                problems += unread
        return found, tuple(problems)

    def beside(self, snapshot: Snapshot, settings: Settings) -> tuple[Beside, ...]:
        """Return what decides beside the profile of platform events in one pass."""
        return tuple(one.beside(snapshot, settings) for one in self.features if one.beside)

    def bears_signs(self, node: Node, prefix: str) -> bool:
        """Whether the node has a sign of ours."""
        return any(one.bears_signs(node, prefix) for one in self.features if one.bears_signs)

    def signs(self, node: Node, standing: Standing, settings: Settings, now: datetime) -> NodeSigns:
        """Return the changes of all signs on a node; `now` is aware, UTC."""
        return all_signs(one.signs(node, standing, settings, now) for one in self.features if one.signs)

    def outlived(self, node: Node, prefix: str) -> NodeSigns:
        """Return the changes that remove what must not stay on a node that has left the fleet."""
        return all_signs(one.outlived(node, prefix) for one in self.features if one.outlived)

    def object_changes(
        self, published: Mapping[str, Sequence[Any]], fleet: Fleet, earlier: Collection[str]
    ) -> ObjectChanges:
        """Return the changes of the objects that were read."""
        found = [one.object_changes(published, fleet, earlier) for one in self.features if one.object_changes]
        return ObjectChanges(
            tuple(write for one in found for write in one.writes),
            tuple(moment for one in found for moment in one.moments),
            tuple(sorted(sign for one in found for sign in one.signs)),
        )

    def removed(self, node: Node, prefix: str) -> NodeSigns:
        """Return the changes that remove all signs from a node."""
        return all_signs(one.removed(node, prefix) for one in self.features if one.removed)
