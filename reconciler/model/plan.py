"""What a pass has decided: for each node its state, checks, holds and actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from reconciler.model.actions import ActionName
from reconciler.model.azure import PerformMaintenance
from reconciler.model.drains import Blocker, DrainOrder, DrainProgress
from reconciler.model.event import MaintenanceEvent
from reconciler.model.holds import WaitsFor
from reconciler.model.keys import OwnKeys
from reconciler.model.machine import Remove, ScaleUp
from reconciler.model.node import Condition
from reconciler.model.publication import Publication
from reconciler.model.record import CaseRecord, State
from reconciler.model.snapshot import Ledger

if TYPE_CHECKING:
    from reconciler.model.ports import ClusterWriter


class Verdict(StrEnum):
    """A check's answer."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """One check's answer, with a reason for a human and, where it can tell, when that will change (UTC).

    `holds` is False for a check that only states a fact: its 'no' is no reason to wait. `waits_for` is what
    the check's registration says.
    """

    name: str
    verdict: Verdict
    reason: str
    until: datetime | None = None
    holds: bool = True
    waits_for: WaitsFor = WaitsFor.OTHER


@dataclass(frozen=True, slots=True)
class Hold:
    """One reason why nothing is done now; `until` is when that changes, where it is known (UTC).

    `code` is the name of a check, or a `HoldCode`.
    """

    node: str
    code: str
    reason: str
    until: datetime | None = None
    waits_for: WaitsFor = WaitsFor.OTHER


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of one profile's state machine, and why it was taken."""

    profile: str
    before: State
    after: State
    because: str

    @property
    def begins(self) -> bool:
        """Whether the node goes out of service with it."""
        return self.after is State.IN_MAINTENANCE and self.before is not State.IN_MAINTENANCE


class NoticeType(StrEnum):
    """The two types that a Kubernetes Event has."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Notice:
    """A Kubernetes Event to be written on the node; only ever on a transition."""

    reason: str
    message: str
    type: NoticeType = NoticeType.NORMAL


@dataclass(frozen=True, slots=True)
class NodeWrite:
    """One patch of one node, with the state of the node that it was decided for.

    Only keys under our own prefix, labels of the tools we adopt, and annotations that `publish` asks for
    are ever named. None as a value takes a key away; `unschedulable` None leaves it alone.
    """

    node: str
    uid: str
    resource_version: str
    seen_unschedulable: bool
    seen_own: Mapping[str, str]
    own_prefix: str
    unschedulable: bool | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def only_shows(self) -> bool:
        """Whether it changes only what other tools are shown."""
        ours = any(map(OwnKeys(self.own_prefix).owns, self.annotations))
        return self.unschedulable is None and not self.labels and not ours


@dataclass(frozen=True, slots=True)
class ConditionsWrite:
    """Conditions to be put into a node's status, and the types of those to be taken away.

    A `transition` of None keeps the moment that is there. It is a Publication.
    """

    node: str
    uid: str
    put: tuple[Condition, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def action(self) -> ActionName:
        """Its name in reports and outcomes."""
        return ActionName.CONDITIONS

    def send(self, writer: ClusterWriter) -> None:
        """Write it; raises ClusterError and LockLost."""
        writer.patch_conditions(self)


@dataclass(frozen=True, slots=True)
class JudgedEvent:
    """An event with what the settings make of it.

    `asks` is whether it wants the node drained, `starts` whether it still wants a drain begun (a pause that
    has started does not), `because` why or why not. `deadline` is `not_before` minus the lead time (UTC).
    `may_start` is what windows and deadline say of `now`, `timing` says it in words, `until` is when that
    answer changes, and `overruled` names the window or the time not allowed that gave way to the deadline.
    `due` is whether it is at hand, so that nothing is waited for. `acknowledges` and `replaces` are what the
    settings want once the node is drained for it.
    """

    event: MaintenanceEvent
    asks: bool
    starts: bool
    because: str
    deadline: datetime | None = None
    may_start: bool = False
    timing: str = ""
    until: datetime | None = None
    overruled: str = ""
    due: bool = False
    acknowledges: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """What a drain does with one pod: evict, delete, skip, keep, wait or refuse; and all reasons."""

    pod: str
    uid: str
    action: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """What draining a node would do, before anything moves."""

    pods: tuple[PodVerdict, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    room: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Actions:
    """The actions for one node.

    `publications` only show something to other tools: they do not count as an action, and are sent last.
    """

    write: NodeWrite | None = None
    drain: DrainOrder | None = None
    stop_drain: bool = False
    perform: PerformMaintenance | None = None
    machine: ScaleUp | Remove | None = None
    notices: tuple[Notice, ...] = ()
    publications: tuple[Publication, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything is done; a patch that only shows something to others does not count."""
        written = self.write is not None and not self.write.only_shows
        return written or self.drain is not None or self.stop_drain


@dataclass(frozen=True, slots=True)
class DrainState:
    """How far a node's drain is: pods that it keeps, what the drainer reports, and what a preview says."""

    kept: tuple[Blocker, ...] = ()
    progress: DrainProgress | None = None
    preview: Preview | None = None


@dataclass(frozen=True, slots=True)
class NodePlan:
    """All that a pass decided about one node: what was seen of it, what follows, and what is to be done.

    `record` is what its profile remembers of it after this pass.
    """

    node: str
    zone: str
    pool: str
    before: State
    after: State
    events: tuple[JudgedEvent, ...] = ()
    checks: tuple[CheckAnswer, ...] = ()
    transitions: tuple[Transition, ...] = ()
    holds: tuple[Hold, ...] = ()
    unknowns: tuple[str, ...] = ()
    unschedulable: bool = False
    record: CaseRecord | None = None
    todo: Actions = Actions()
    draining: DrainState = DrainState()

    @property
    def acts(self) -> bool:
        """Whether anything is done about this node."""
        return self.todo.any

    @property
    def starts(self) -> bool:
        """Whether a drain of the node begins with this pass."""
        return any(step.begins for step in self.transitions)


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """The whole fleet's budget after this plan: places in all, and who holds one, with the reason."""

    limit: int
    fleet: int
    holders: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass decided, nodes in the order in which they are dealt with.

    `next_change` is the earliest moment at which this plan would differ with the same cluster (UTC).
    `publications` show the plan as a whole to other tools.
    """

    now: datetime
    mode: str
    nodes: tuple[NodePlan, ...] = ()
    managed: int = 0
    budget: BudgetUse = BudgetUse(0, 0)
    ledger: Ledger | None = None
    notes: tuple[str, ...] = ()
    next_change: datetime | None = None
    publications: tuple[Publication, ...] = ()
