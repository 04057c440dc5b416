"""What a check or a trigger is told, and what each gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.engine.case import CaseView
from reconciler.engine.places import Places
from reconciler.model.cloud import PerformMaintenance
from reconciler.model.node import Node
from reconciler.model.plan import CheckAnswer, JudgedEvent, Notice
from reconciler.model.record import Record, State
from reconciler.model.snapshot import Ledger
from reconciler.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that one node's checks and triggers may look at.

    `judged` are the node's events but for dismissed ones; `waiting_nodes` counts the other nodes that are
    still to be drained (our own node goes last).
    """

    node: Node
    state: State
    record: Record
    judged: tuple[JudgedEvent, ...]
    case: CaseView
    settings: Settings
    places: Places
    ledger: Ledger
    now: datetime
    skew: timedelta | None = None
    own_node: bool = False
    waiting_nodes: int = 0

    @property
    def asking(self) -> tuple[JudgedEvent, ...]:
        """The events that want a drain begun."""
        return tuple(one for one in self.judged if one.asks and one.starts)


@dataclass(frozen=True, slots=True)
class Effects:
    """What triggers have done so far: the node as it should be, the record, and what to tell."""

    record: Record
    unschedulable: bool | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    perform: PerformMaintenance | None = None

    def told(self, notice: Notice) -> Effects:
        """Return the effects with one more Event to write."""
        return replace(self, notices=(*self.notices, notice))


Check = Callable[[Situation], CheckAnswer]
Trigger = Callable[[Situation, Effects], Effects]
