"""What the case of a node does in this pass: between what is known of the node, and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from reconciler.model.drains import Blocker, DrainOrder, DrainProgress
from reconciler.model.messages import ProfileMessage
from reconciler.model.node import Node
from reconciler.model.plan import CheckAnswer, Hold, NodePart, Notice, Transition
from reconciler.model.record import CaseRecord, State, worst_of
from reconciler.model.schedule import CaseSchedule
from reconciler.model.tasks import Task
from reconciler.model.writes import Publication
from reconciler.profiles.case import CaseView


class NodeSigns(Struct, frozen=True):
    """The changes on one node: annotations and labels, which are part of its patch, and separate writes.

    None as a value removes the annotation or label. `tasks` are performed at the place of their kind, once
    the patch is written. `holds` say what the feature waits for, and `notices` what it has done.
    """

    annotations: Mapping[str, str | None] = field(default_factory=dict)
    writes: tuple[Publication, ...] = ()
    labels: Mapping[str, str | None] = field(default_factory=dict)
    tasks: tuple[Task, ...] = ()
    holds: tuple[Hold, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything changes on the node."""
        return bool(self.annotations or self.writes or self.labels)


class CaseDecision(Struct):
    """What is decided about the case of a node. Each step of `decide_node` adds its part.

    `before` is the case as its events are now, before the state machine ran, and `record` the case after the
    pass. `view` are its events, `answers` those of the checks, `holds` what holds the node, and `alone` the
    checks of which each is all that keeps a step from being taken. `after` is the node as the triggers leave
    it, None if it must not be changed. `schedule` is when its drain was planned to start.

    Features come first. `left` is the node as they leave it, None if they change nothing, `annotations` are
    those that change beside the ones of `left`, and `used` the labels and annotations that they read, as
    `NodeWrite.seen_by_checks` holds them. `shown_by` is the label that shows the worst state of the node, its
    case included, even if that is operational; empty if none does. `transitions_of_features` and
    `holds_of_features` are those of their profiles, and `messages` what these send. `of_features` is what
    they say of the node, and `known` what they know of it beside the rest, as checks read it, both under
    their names.

    `begun` says that a drain of the node has begun. `drain` is the order for the drainer: first that of
    a feature, until the drain of the case takes its place. `stop_drain` is whether a drain has to stop,
    `kept` are the pods that stay, `progress` is what the drainer says. `tasks` are those of features.

    `pending` are Events about facts that the record had before, `news` those about new facts, and `notices`
    those of features, of the triggers and about the drain. `noted` is the record once those about facts are
    sent, None if there are none, or if the case ends. `ended` is the case that ended with this pass.

    `cordoned` says whether the node was cordoned before this pass, and stays so. `signs` are what features
    change on it once all that is decided.
    """

    state: State
    record: CaseRecord
    holds: tuple[Hold, ...] = ()
    before: CaseRecord = CaseRecord()
    view: CaseView = CaseView()
    answers: tuple[CheckAnswer, ...] = ()
    alone: frozenset[str] = frozenset()
    transitions: tuple[Transition, ...] = ()
    after: Node | None = None
    schedule: CaseSchedule | None = None
    left: Node | None = None
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    used: Mapping[str, str | None] = field(default_factory=dict)
    shown_by: str = ""
    transitions_of_features: tuple[Transition, ...] = ()
    holds_of_features: tuple[Hold, ...] = ()
    messages: tuple[ProfileMessage, ...] = ()
    of_features: Mapping[str, NodePart] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    begun: bool = False
    drain: DrainOrder | None = None
    stop_drain: bool = False
    kept: tuple[Blocker, ...] = ()
    progress: DrainProgress | None = None
    tasks: tuple[Task, ...] = ()
    notices: tuple[Notice, ...] = ()
    pending: tuple[Notice, ...] = ()
    news: tuple[Notice, ...] = ()
    noted: CaseRecord | None = None
    ended: CaseRecord | None = None
    signs: NodeSigns = NodeSigns()
    cordoned: bool = False

    @property
    def open(self) -> bool:
        """Whether there is a case."""
        return self.state is not State.OPERATIONAL

    @property
    def worst_of_features(self) -> tuple[State, State]:
        """The worst states that the node had and has for features."""
        states = [state for part in self.of_features.values() for state in part.states.values()]
        return worst_of(*(before for before, _ in states)), worst_of(*(after for _, after in states))

    @property
    def drained(self) -> bool:
        """Whether all pods that had to go are gone."""
        drain = self.record.drain
        return self.state is State.IN_MAINTENANCE and drain is not None and drain.done is not None

    @property
    def started(self) -> bool:
        """Whether the maintenance itself has begun.

        If its source reports no start, it begins when the node is drained.
        """
        events = [judged.event for judged in self.view.present]
        if any(event.started for event in events):
            return True
        return self.drained and bool(events) and not any(event.reports_start for event in events)
