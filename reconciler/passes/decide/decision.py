"""What the case of a node does in this pass: between what is known of the node, and its plan."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.drains import Blocker, DrainOrder, DrainProgress
from reconciler.model.plan import CheckAnswer, Hold, Notice, Transition
from reconciler.model.record import CaseRecord, State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.tasks import Task
from reconciler.profiles.case import CaseView
from reconciler.profiles.situation import Effects


class CaseDecision(Struct):
    """What is decided about the case of a node. Each step of `decide_node` adds its part.

    `before` is the case as its events are now, before the state machine ran, and `record` the case after the
    pass. `view` are its events, `answers` those of the checks, `holds` what holds the node. `effects` are
    what the triggers do, None for a node that must not be changed. `schedule` is when its drain was planned
    to start.

    `begun` says that a drain of the node has begun. `drain` is the order for the drainer, `stop_drain`
    whether a drain has to stop, `kept` are the pods that stay, `progress` is what the drainer says. `tasks`
    are those of features.

    `pending` are Events about facts that the record had before, `news` those about new facts, and `notices`
    those about the drain. `noted` is the record once those about facts are sent, None if there are none,
    or if the case ends. `ended` is the case that ended with this pass.
    """

    state: State
    record: CaseRecord
    holds: tuple[Hold, ...] = ()
    before: CaseRecord = CaseRecord()
    view: CaseView = CaseView()
    answers: tuple[CheckAnswer, ...] = ()
    transitions: tuple[Transition, ...] = ()
    effects: Effects | None = None
    schedule: CaseSchedule | None = None
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
