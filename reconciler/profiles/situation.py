"""What checks and triggers of the platform's profile read, and what triggers of any profile return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from reconciler.model.instructions import Instructions, Wait, instructions_of
from reconciler.model.machine import Machine
from reconciler.model.node import Node
from reconciler.model.outcome import ActionKind
from reconciler.model.plan import JudgedEvent, NodePlan, Notice
from reconciler.model.record import CaseRecord, State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.snapshot import Ledger
from reconciler.model.tasks import Task
from reconciler.model.values import replace
from reconciler.profiles.case import CaseView, covers
from reconciler.profiles.endings import Ends
from reconciler.profiles.vocabulary import CheckResult, passed
from reconciler.settings.schema import Settings
from reconciler.starts.answer import StartAnswer
from reconciler.starts.budget import DisruptionBudget


class Situation(Struct, frozen=True, dict=True):
    """Everything that the checks and triggers of one node may read.

    `judged` are the node's events without dismissed ones. `schedule` is when its drain is planned to start,
    None if that is not known. `goes_last` is the wait of our own node for the other ones. `offers` are those
    of all plugins, and `of_features` is what features know of the node beside the rest, by their names.

    `machine` is the node's machine, None if it was not read. `twin` names a node with the same providerID,
    empty if there is none: a VM that two nodes claim is not changed. `earlier` are the plans of the nodes
    that were decided before this one, in that order.
    """

    node: Node
    record: CaseRecord
    judged: tuple[JudgedEvent, ...]
    case: CaseView
    settings: Settings
    places: DisruptionBudget
    ledger: Ledger
    now: datetime
    own_node: bool = False
    schedule: CaseSchedule | None = None
    goes_last: Wait | None = None
    machine: Machine | None = None
    twin: str = ""
    earlier: Mapping[str, NodePlan] = field(default_factory=dict)
    offers: tuple[Offer, ...] = ()
    of_features: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """The state of the profile."""
        return self.record.state

    @property
    def asked(self) -> tuple[Offer, ...]:
        """The offers by which something was asked for the case."""
        return tuple(offer for offer in self.offers if self.record.asked_by(offer.name) is not None)

    @cached_property
    def due(self) -> tuple[tuple[Offer, CheckResult], ...]:
        """Each offer with whether it is due. A check and the trigger behind it read one answer."""
        return tuple((offer, offer.due(self)) for offer in self.offers)

    @property
    def quiet_since(self) -> datetime:
        """Since when no event of the case is current (UTC): now, if the record does not say."""
        return self.record.quiet_since or self.now

    @property
    def settles_until(self) -> datetime | None:
        """When the settle time after the last event ends (UTC), None if it has passed."""
        until = self.quiet_since + self.settings.uncordon.settle
        return until if self.now < until else None

    @cached_property
    def instructions(self) -> Instructions:
        """What people say about the node."""
        return instructions_of(self.node, self.settings.keys.prefix, self.now, self.ledger.holds)

    @cached_property
    def asking(self) -> tuple[JudgedEvent, ...]:
        """The events that require the start of a drain."""
        return tuple(judged for judged in self.judged if judged.asks and judged.starts)

    @cached_property
    def undrained(self) -> tuple[JudgedEvent, ...]:
        """The events that require a drain for which the node was not drained, and is not being drained."""
        return tuple(judged for judged in self.asking if not covers(self.record, judged.event))

    @cached_property
    def start(self) -> StartAnswer:
        """Whether a drain of the node may start now, and what it waits for."""
        # A node that is drained again, for another event, has had its start.
        last_start = self.ledger.last_start if self.record.drain is None else None
        return StartAnswer(
            self.node,
            self.asking,
            self.undrained,
            self.schedule,
            self.places,
            last_start,
            self.goes_last,
            self.now,
        )


class Request(Struct, frozen=True):
    """What an offer asks of the platform now, and the Event that says so.

    `task` is performed once the record has the request, None if the platform sees it on the node itself.
    `events` are the IDs of the events that it is about, as the record has them: an event has the IDs of all
    its sources. They are empty if it is about the whole case. `own` is what the offer has to know later
    (`Asked.own`).
    """

    notice: Notice
    task: Task | None = None
    events: tuple[str, ...] = ()
    own: str = ""


def _waits_for_nothing(_: Situation) -> CheckResult:
    return passed()


class Offer(Struct, frozen=True):
    """What a plugin can ask of the platform, so that the maintenance of a node begins or ends by us.

    `name` stands in records and never changes. `platform` says who is asked, in words. `actions` are the
    kinds of its tasks. All functions get the situation of one node and are pure:

    - `due` passes if it is to be asked now. A failure says why not, until when (UTC), and whether the node
      waits for that; `who` can end it, `by_itself` if it ends without a person.
    - `request` returns what is asked, once that is due; None if it can't be asked after all.
    - `answered` passes unless the case has to wait for the platform, which then `answers`, in words.
    - `left` returns an Event if somebody has to undo what was asked, because the case goes on without it.
    - `refused` passes if the platform has not done what it was asked for, and is not asked again; None if
      the case does not end by that.
    - `ends` returns how it ends an event of a node; None if it ends none. A drain whose event ends by us may
      start early.

    An offer that `ends_machine` leads to the end of the node's machine, and so of the node.

    An offer that `prepares` is for what has to be there first. Nothing holds it, and it may be due before
    the drain, which then waits for its answer. What is asked twice must do no harm: a pass that is killed may
    have asked.
    """

    name: str
    platform: str
    due: Callable[[Situation], CheckResult]
    request: Callable[[Situation], Request | None]
    actions: tuple[ActionKind, ...] = ()
    who: str = ""
    by_itself: bool = False
    answered: Callable[[Situation], CheckResult] = _waits_for_nothing
    answers: str = ""
    left: Callable[[Situation], Notice | None] | None = None
    prepares: bool = False
    ends_machine: bool = False
    refused: Callable[[Situation], CheckResult] | None = None
    ends: Ends | None = None


Kept = TypeVar("Kept")


class Work(Struct, Generic[Kept], frozen=True):
    """A node and what is recorded of it as the triggers so far leave them, and what they ask for.

    `waits` is why the chain can't go on now, empty if it can.
    """

    node: Node
    record: Kept
    notices: tuple[Notice, ...] = ()
    tasks: tuple[Task, ...] = ()
    waits: str = ""

    def with_notice(self, notice: Notice) -> Work[Kept]:
        """Return the work with one more notice."""
        return replace(self, notices=(*self.notices, notice))

    def with_task(self, task: Task) -> Work[Kept]:
        """Return the work with this task, in place of an earlier one that is done through the same client."""
        others = (other for other in self.tasks if other.what[0] != task.what[0])
        return replace(self, tasks=(*others, task))


Effects = Work[CaseRecord]
"""That of the profile for events of the platform, which changes only its own case of the record."""
