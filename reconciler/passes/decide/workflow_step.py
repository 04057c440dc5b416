"""What the workflows of one node do in a pass."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from reconciler.model.drains import DrainOrder
from reconciler.model.node import Node
from reconciler.model.plan import Hold, Notice, Transition, WorkflowReport
from reconciler.model.record import Record, State
from reconciler.model.workflow import HypervisorWrite, LeaseTake, WorkflowData, WorkflowMessage


class WorkflowStep(Struct, frozen=True):
    """The node and its record as its workflows leave them, and what follows.

    `text` is the annotation with their data, None if it stays as it is. `used` are the labels and annotations
    of the node that they read, as `NodeWrite.seen_by_checks` holds them. `elsewhere` names what the profile
    of platform events has to wait for, empty if it need not. `order` is the drain that a chain waits for.
    `readable` is False if their data can't be read: nothing about them is written then. `next_message` is
    when their next message is due (UTC), None if none will be.
    """

    node: Node
    record: Record | None
    data: WorkflowData = WorkflowData()
    before: State = State.OPERATIONAL
    text: str | None = None
    used: Mapping[str, str | None] = field(default_factory=dict)
    elsewhere: str = ""
    order: DrainOrder | None = None
    reports: tuple[WorkflowReport, ...] = ()
    transitions: tuple[Transition, ...] = ()
    holds: tuple[Hold, ...] = ()
    notices: tuple[Notice, ...] = ()
    takes: tuple[LeaseTake, ...] = ()
    hypervisor: HypervisorWrite | None = None
    readable: bool = True
    messages: tuple[WorkflowMessage, ...] = ()
    next_message: datetime | None = None
