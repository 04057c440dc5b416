"""What checks and triggers of the platform's profile read, and what triggers of any profile return."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Generic, TypeVar

from msgspec import Struct

from reconciler.model.drains import Blocker
from reconciler.model.instructions import Instructions, Wait, instructions_of
from reconciler.model.machine import Machine
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent, Notice
from reconciler.model.record import CaseRecord, State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.snapshot import Ledger
from reconciler.model.tasks import Task
from reconciler.model.values import replace
from reconciler.profiles.case import CaseView, covers, waits
from reconciler.profiles.endings import is_control_plane
from reconciler.settings.schema import Settings
from reconciler.starts.answer import StartAnswer
from reconciler.starts.budget import DisruptionBudget


class Acknowledgement(Struct, frozen=True):
    """An event that should start early, with its ID as in IMDS; `refusal` says why it may not."""

    id: str
    refusal: str = ""


class Situation(Struct, frozen=True, dict=True):
    """Everything that the checks and triggers of one node may read.

    `judged` are the node's events without dismissed ones. `acknowledgements` are the events that should start
    early. `schedule` is when its drain is planned to start, None if that is not known. `goes_last` is the
    wait of our own node for the other ones.

    `machine` is the node's machine, None if it was not read. `twin` names a node with the same providerID,
    and `before_us` one of the same pool that is being replaced, each empty if there is none: a VM that two
    nodes claim is not changed. `staying` are the pods that the drain leaves on the node, and `pods_unknown`
    says why they are not known, empty if they are.
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
    acknowledgements: tuple[Acknowledgement, ...] = ()
    machine: Machine | None = None
    twin: str = ""
    before_us: str = ""
    staying: tuple[Blocker, ...] = ()
    pods_unknown: str = ""

    @property
    def state(self) -> State:
        """The state of the profile."""
        return self.record.state

    @property
    def to_acknowledge(self) -> tuple[Acknowledgement, ...]:
        """The events that may start now and are not acknowledged yet."""
        known = self.record.acknowledged
        return tuple(one for one in self.acknowledgements if not one.refusal and one.id not in known)

    @property
    def held_back(self) -> tuple[Acknowledgement, ...]:
        """The events that may not start yet."""
        return tuple(one for one in self.acknowledgements if one.refusal)

    @property
    def quiet_since(self) -> datetime:
        """Since when no event of the case is current (UTC): now, if the record does not say."""
        return self.record.quiet_since or self.now

    @property
    def settles_until(self) -> datetime | None:
        """When the settle time after the last event ends (UTC), None if it has passed."""
        until = self.quiet_since + self.settings.uncordon.settle
        return until if self.now < until else None

    @property
    def control_plane(self) -> bool:
        """Whether the node runs the cluster's own control plane."""
        return is_control_plane(self.node, self.machine)

    @property
    def replacing(self) -> tuple[JudgedEvent, ...]:
        """The events for which the machine of the node is replaced.

        On a drained node, not those for which a drain may not begin yet.
        """
        found = tuple(one for one in self.judged if one.asks and one.after_drain.replaces)
        if self.record.drain is not None:
            return tuple(one for one in found if not waits(self.record, one.event))
        starting = any(one.may_start for one in self.asking)
        return tuple(one for one in found if one.may_start or not starting)

    @cached_property
    def instructions(self) -> Instructions:
        """What people say about the node."""
        return instructions_of(self.node, self.settings.keys.prefix, self.now, self.ledger.holds)

    @cached_property
    def asking(self) -> tuple[JudgedEvent, ...]:
        """The events that require the start of a drain."""
        return tuple(one for one in self.judged if one.asks and one.starts)

    @cached_property
    def undrained(self) -> tuple[JudgedEvent, ...]:
        """The events that require a drain for which the node was not drained, and is not being drained."""
        return tuple(one for one in self.asking if not covers(self.record, one.event))

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
