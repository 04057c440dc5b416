"""What a check or a trigger receives, and what each returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.engine.budget import DisruptionBudget
from reconciler.engine.case import CaseView
from reconciler.model.azure import PerformMaintenance
from reconciler.model.machine import Machine, Remove, ScaleUp
from reconciler.model.node import CONTROL_PLANE_LABELS, Node
from reconciler.model.plan import CheckAnswer, JudgedEvent, Notice
from reconciler.model.record import CaseRecord, State
from reconciler.model.snapshot import Ledger
from reconciler.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An event that is to start early, by its id as IMDS spells it; `refusal` says why it may not."""

    id: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that one node's checks and triggers may look at.

    `judged` are the node's events but for dismissed ones; `waiting_nodes` counts the other nodes that are
    still to be drained (our own node goes last). `acknowledgements` are the events that are to start early.
    `machine` is what owns the node's VM, None where nobody asked; `before_us` names another node of the same
    pool that is being replaced, empty where none is.
    """

    node: Node
    state: State
    record: CaseRecord
    judged: tuple[JudgedEvent, ...]
    case: CaseView
    settings: Settings
    places: DisruptionBudget
    ledger: Ledger
    now: datetime
    skew: timedelta | None = None
    own_node: bool = False
    waiting_nodes: int = 0
    acknowledgements: tuple[Acknowledgement, ...] = ()
    machine: Machine | None = None
    before_us: str = ""

    @property
    def to_acknowledge(self) -> tuple[Acknowledgement, ...]:
        """The events that may start now, and are not acknowledged yet."""
        known = self.record.acknowledged
        return tuple(one for one in self.acknowledgements if not one.refusal and one.id not in known)

    @property
    def held_back(self) -> tuple[Acknowledgement, ...]:
        """The events that may not start yet."""
        return tuple(one for one in self.acknowledgements if one.refusal)

    @property
    def control_plane(self) -> bool:
        """Whether the node carries the cluster's own control plane."""
        told = self.machine is not None and self.machine.control_plane
        return told or any(label in self.node.labels for label in CONTROL_PLANE_LABELS)

    @property
    def replacing(self) -> tuple[JudgedEvent, ...]:
        """The events for which the machine of the node is replaced."""
        return tuple(one for one in self.judged if one.asks and one.replaces)

    @property
    def asking(self) -> tuple[JudgedEvent, ...]:
        """The events that want a drain begun."""
        return tuple(one for one in self.judged if one.asks and one.starts)


@dataclass(frozen=True, slots=True)
class Effects:
    """The result of the triggers so far: the node as it should be, the record, and the notices."""

    record: CaseRecord
    unschedulable: bool | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    perform: PerformMaintenance | None = None
    machine: ScaleUp | Remove | None = None

    def told(self, notice: Notice) -> Effects:
        """Return the effects with one more Event to write."""
        return replace(self, notices=(*self.notices, notice))


Check = Callable[[Situation], CheckAnswer]
Trigger = Callable[[Situation, Effects], Effects]
