"""What a feature may give to a pass: one value, whose parts are in the order of the flow.

A part that a feature does not need is left out. The core asks each part of all features, see parts.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from reconciler.model.machine import MachineRef
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.ports import ClusterReader, Outside
from reconciler.model.problems import Gaps
from reconciler.model.snapshot import Snapshot
from reconciler.model.workflow import ReadForChecks
from reconciler.model.writes import Publication
from reconciler.passes.source import Wants
from reconciler.passes.standing import Standing
from reconciler.settings.schema import Settings

if TYPE_CHECKING:
    from reconciler.passes.decide.workflow_step import WorkflowStep
    from reconciler.profiles.situation import Situation


class NodeSigns(Struct, frozen=True):
    """The changes on one node: annotations and labels, which are part of its patch, and separate writes.

    None as a value removes the annotation or label.
    """

    annotations: Mapping[str, str | None] = field(default_factory=dict)
    writes: tuple[Publication, ...] = ()
    labels: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether anything changes."""
        return bool(self.annotations or self.writes or self.labels)


def all_signs(some: Iterable[NodeSigns]) -> NodeSigns:
    """Return all of these changes as one."""
    annotations: dict[str, str | None] = {}
    labels: dict[str, str | None] = {}
    writes: list[Publication] = []
    for one in some:
        annotations |= one.annotations
        labels |= one.labels
        writes += one.writes
    return NodeSigns(annotations, tuple(writes), labels)


class Fleet(Struct, frozen=True):
    """What objects follow from: the plans, the nodes by name, and the moment (aware, UTC)."""

    plans: tuple[NodePlan, ...]
    nodes: Mapping[str, Node]
    settings: Settings
    now: datetime


class ObjectChanges(Struct, frozen=True):
    """Writes, and the moments (UTC) at which time alone changes an object.

    `signs` names those that may have objects after these writes.
    """

    writes: tuple[Publication, ...] = ()
    moments: tuple[datetime, ...] = ()
    signs: tuple[str, ...] = ()


class Beside(Protocol):
    """What a feature does with nodes beside the profile of platform events, in one pass. One feature can.

    `one` is a `Seen`, `context` a `PassContext` and `progress` a `Progress`. Their files need this one.
    """

    def step(self, one: Any, situation: Situation, context: Any) -> WorkflowStep | None:
        """Return what it does with a node, before that profile; None if the node is none of its own."""

    def note(self, one: Any, progress: Any) -> None:
        """Show the nodes that come later in the pass what was decided about this one."""


ReadObjects = tuple[Mapping[str, Sequence[Any]], tuple[str, ...]]
"""Objects by sign, and a message for each kind that can't be read."""


class Feature(Struct, frozen=True):
    """What a feature gives to a pass, in the order of the flow. `prefix` is that of our keys.

    `reads` says which parts of nodes it reads; those of signs also while the settings have them off, because
    they are then removed. `machine_of` returns the machine of a node, None if it knows nothing of it, and
    sends no request. `read_checks` reads what the checks of workflows need, and `beside` makes what decides
    beside the profile of platform events in one pass.

    Signs show a case on its node to other tools. `bears_signs` says whether a node has one, which may have to
    change even if the node has no event, and `signs` returns the changes at `now` (aware, UTC). `outlived`
    returns those that remove what must not stay on a node that has left the fleet, and `removed` those that
    remove everything, for a release.

    Objects show cases beside nodes. `read_objects` reads them, and notes in the gaps what we may not read;
    `object_changes` returns what to write so that they agree with the plans. Both get the signs that may have
    objects from before, though the settings may not name them any more.
    """

    name: str
    reads: Callable[[Settings], Wants] | None = None
    machine_of: Callable[[Node], MachineRef | None] | None = None
    read_checks: Callable[[Outside, Settings], ReadForChecks] | None = None
    read_objects: Callable[[ClusterReader, Settings, Collection[str], Gaps], ReadObjects] | None = None
    beside: Callable[[Snapshot, Settings], Beside] | None = None
    bears_signs: Callable[[Node, str], bool] | None = None
    signs: Callable[[Node, Standing, Settings, datetime], NodeSigns] | None = None
    outlived: Callable[[Node, str], NodeSigns] | None = None
    object_changes: Callable[[Mapping[str, Sequence[Any]], Fleet, Collection[str]], ObjectChanges] | None = (
        None
    )
    removed: Callable[[Node, str], NodeSigns] | None = None
