"""What a pass knows about each node before it decides, and what the decisions share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import force_setattr

from reconciler.model.event import Answer
from reconciler.model.holds import HoldCode
from reconciler.model.instructions import Instructions, instructions_of
from reconciler.model.keys import OwnKeys, keys_of
from reconciler.model.machine import Machine
from reconciler.model.node import HOSTED_LABEL, Node, OwnTimes, own_times
from reconciler.model.plan import (
    Hold,
    JudgedEvent,
    NodePlan,
)
from reconciler.model.problems import internal
from reconciler.model.record import CaseRecord, Record, State, Unreadable
from reconciler.model.schedule import LEAST_URGENT, CaseSchedule, Urgency
from reconciler.model.snapshot import Ledger, NodeAssessment, Snapshot
from reconciler.model.values import replace
from reconciler.model.workflow import upgrade_on
from reconciler.passes.parts import Parts
from reconciler.passes.plugin import Beside, WorkflowStep
from reconciler.profiles import case as cases
from reconciler.profiles.budget import DisruptionBudget
from reconciler.profiles.checks.people import is_adoptable
from reconciler.profiles.instructed import beside_upgrade, instructed
from reconciler.profiles.judging import judge, urgency_of
from reconciler.profiles.situation import Acknowledgement
from reconciler.settings.schema import Settings


class PassContext(Struct, frozen=True, dict=True):
    """The snapshot of the cluster, the settings, and the moment of the pass (UTC).

    `reading_names` are those of the enabled sources: no case waits for another source. `notice_names` are
    those that report maintenance minutes before it begins. `twins` are the nodes that have one VM with
    another node, each with that node's name. `parts` are the sources and features.
    `upgraded` are the agent pools with a node that AKS upgrades.
    """

    snapshot: Snapshot
    settings: Settings
    now: datetime
    parts: Parts
    reading_names: frozenset[str] = frozenset()
    twins: Mapping[str, str] = field(default_factory=dict)
    notice_names: frozenset[str] = frozenset()
    upgraded: frozenset[str] = frozenset()

    @cached_property
    def second(self) -> datetime:
        """The moment as records keep it: in whole seconds."""
        return self.now.replace(microsecond=0)

    @cached_property
    def times(self) -> OwnTimes:
        """Which of our own times to believe."""
        return own_times(self.now, self.snapshot.skew)

    def instructions(self, node: Node) -> Instructions:
        """Return what people say about a node."""
        return instructions_of(node, self.settings.keys.prefix, self.now, self.snapshot.ledger.holds)

    @property
    def keys(self) -> OwnKeys:
        """Our labels and annotations."""
        return keys_of(self.settings.keys.prefix)


DEFAULT = "default"


class NodeFacts(Struct, frozen=True):
    """One node with everything that the pass knows about it before it decides.

    `record` is the record as it applies now, `written` the one that the annotation has: a person's claim ends
    with the cordon, and `times` says which of its times to believe. `problem` is set if an error in this
    program kept the node from being judged. `urgency` is its place in the order of the nodes, None if no
    event requires a drain. `workflows` is what its workflows do in this pass, None before they ran.
    """

    read: Node
    assessment: NodeAssessment
    judged: tuple[JudgedEvent, ...] = ()
    record: Record | None = None
    unreadable: str = ""
    profile: str = DEFAULT
    problem: str = ""
    urgency: Urgency | None = None
    times: OwnTimes | None = None
    instructions: Instructions = Instructions()
    workflows: WorkflowStep | None = None
    written: Record | None = None
    case: CaseRecord = CaseRecord()
    """The profile's data about the node, and its claims."""

    def __post_init__(self) -> None:
        """Take the view of the record in this pass, which is read many times, and keep the given one."""
        record = self.record.in_force(cordoned=self.read.unschedulable) if self.record is not None else None
        if record is not None and self.times is not None:
            record = record.believed(self.profile, self.times)
        step = self.workflows
        if step is not None:
            record = step.record
        case = record.case(self.profile) if record is not None else CaseRecord()
        if step is not None and step.elsewhere:
            case = replace(case, elsewhere=step.elsewhere)
        force_setattr(self, "written", self.record)
        force_setattr(self, "record", record)
        force_setattr(self, "case", case)

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.read.name

    @property
    def attempts(self) -> int:
        """How many attempts at the drain the record counts, 0 before the first."""
        return self.case.drain.attempt if self.case.drain is not None else 0

    @property
    def of_the_future(self) -> bool:
        """Whether the record has times that a clock wrote which was ahead."""
        known, times = self.written, self.times
        return known is not None and times is not None and known.believed(self.profile, times) != known

    @property
    def state(self) -> State:
        """The state before the pass; a drain by hand is maintenance."""
        by_hand = self.record is not None and self.record.claimed_by
        return State.IN_MAINTENANCE if by_hand else self.case.state


def look_safely(node: Node, assessment: NodeAssessment, context: PassContext) -> NodeFacts | None:
    """Return what `look` does; where that fails, or something failed before, the node with the problem."""
    problem = context.snapshot.problems.nodes.get(node.name) or assessment.problem
    if not problem:
        try:
            return look(node, assessment, context)
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            problem = internal(f"node {node.name} can't be judged", error)
    return broken(node, context, problem)


def broken(node: Node, context: PassContext, problem: str) -> NodeFacts:
    """Return a node of which only its record is used, because an error kept it from being judged."""
    record = context.snapshot.records.get(node.name)
    known = record if isinstance(record, Record) else None
    return NodeFacts(node, NodeAssessment(), record=known, problem=problem, times=context.times)


def rests(node: Node, assessment: NodeAssessment, settings: Settings, parts: Parts) -> bool:
    """Whether no decision is about the node, so that it only counts: it is in service, without any news."""
    return not (node.out_of_service or settings.profiles.on or _has_news(node, assessment, settings, parts))


def _has_news(node: Node, assessment: NodeAssessment, settings: Settings, parts: Parts) -> bool:
    """Whether there is something to decide or report about the node."""
    keys = keys_of(settings.keys.prefix)
    unknown = any(reading.answer is Answer.UNKNOWN and reading.installed for reading in assessment.readings)
    marked = keys.state in node.labels
    signed = parts.bears_signs(node, keys.prefix)
    instructed_by = any(key in node.annotations for key in keys.instructions)
    return bool(
        assessment.events
        or keys.record in node.annotations
        or unknown
        or marked
        or signed
        or instructed_by
        or is_adoptable(node, settings)
    )


def look(node: Node, assessment: NodeAssessment, context: PassContext) -> NodeFacts | None:
    """Return what is known about a node, None if there is nothing to decide or report."""
    snapshot, settings = context.snapshot, context.settings
    runs = settings.profiles.on and settings.manages(node.labels)
    if not runs and not _has_news(node, assessment, settings, context.parts):
        return None
    notice = any(
        reading.source in context.notice_names and reading.installed and reading.answer is not Answer.UNKNOWN
        for reading in assessment.readings
    )
    judged = tuple(
        judge(event, node, settings, snapshot.remediator, context.now, notice=notice)
        for event in assessment.events
    )
    record = snapshot.records.get(node.name)
    if isinstance(record, Unreadable):
        return NodeFacts(node, assessment, judged, unreadable=record.because)
    seen = NodeFacts(node, assessment, judged, record, times=context.times)
    said = context.instructions(node)
    judged = tuple(instructed(event, said, seen.case, node, settings, context.now) for event in judged)
    upgrade = upgrade_on(node, context.upgraded)
    judged = tuple(beside_upgrade(event, upgrade, context.now) for event in judged)
    return replace(seen, record=record, judged=judged, instructions=said, urgency=_urgency(seen, context))


def why_out_of_service(record: Record | None) -> str:
    """Return why a node with this record is out of service, empty if it is not."""
    if record is None:
        return ""
    if record.claimed_by:
        return f"drained by hand by {record.claimed_by}"
    if not record.in_maintenance:
        return f"in maintenance for {', '.join(record.workflows)}" if record.workflows else ""
    return "ours, drained" if record.drain and record.drain.drain.done else "ours, draining"


QueueKey = tuple[bool, tuple[bool, bool, datetime, int], str, str]


def queue_key(node: NodeFacts, own_node: str | None) -> QueueKey:
    """Return the sort key of a node: our own node goes last, then by urgency, zone and name."""
    return (node.name == own_node, (node.urgency or LEAST_URGENT).key, node.read.zone, node.name)


def last_key(name: str) -> QueueKey:
    """Return the sort key of a node of which nothing else is known."""
    return (False, LEAST_URGENT.key, "", name)


def _urgency(node: NodeFacts, context: PassContext) -> Urgency | None:
    switched_on = context.reading_names.__contains__
    hidden = [
        known
        for known in node.case.events
        if not any(known.matches(judged.event) for judged in node.judged)
        and any(cases.is_silent(known, source, node.assessment, switched_on) for source in known.sources)
    ]
    return urgency_of(cases.not_dismissed(node.case, node.judged), hidden, node.read, context.settings)


def untouchable(node: NodeFacts, settings: Settings) -> Hold | None:
    """Return why the node must not be changed at all, None if it may be."""
    name, release = node.name, keys_of(settings.keys.prefix).release(node.name)
    if node.unreadable:
        fix = f"{release} --reset removes it"
        return Hold(name, HoldCode.RECORD_READABLE, f"its record is not changed: {node.unreadable}; {fix}")
    if not settings.in_fleet(node.read.labels):
        undo = f"{release} removes our cordon, label and record"
        return Hold(name, HoldCode.LOOKED_AFTER, f"nodeSelector no longer selects it; {undo}")
    if HOSTED_LABEL in node.read.labels:
        return Hold(name, HoldCode.LOOKED_AFTER, f"AKS manages the node itself (label {HOSTED_LABEL})")
    if not settings.manages(node.read.labels):
        return Hold(name, HoldCode.LOOKED_AFTER, f"label {keys_of(settings.keys.prefix).ignore} excludes it")
    if node.record is not None and node.record.claimed_by:
        return Hold(name, HoldCode.NOT_CLAIMED, f"it is drained by hand by {node.record.claimed_by}")
    return None


PoolKey = tuple[str, str, str, str]
"""The provider, kind, namespace and name of a pool."""


def pool_key(machine: Machine | None) -> PoolKey | None:
    """Return what identifies the machine's pool, None if the pool is unknown."""
    if machine is None or machine.pool is None:
        return None
    return (machine.ref.provider, machine.pool.kind, machine.pool.namespace, machine.pool.name)


class Progress(Struct):
    """Places taken, the last start, pools scaled up, and drains in progress, after the nodes so far.

    `drains` counts the orders that use a slot. `holding` are the nodes whose drains hold one and that have no
    decision yet. `undrained` counts the nodes for which our own node waits, and `begun` is when the drain of
    the last of them began (UTC). `slot_free_at` is when the first slot may become free, and `stuck_at` when
    our own node may no longer wait for one of the others (UTC). `schedules` says when each case is planned to
    start. `beside` is what features do beside the profile of platform events.
    """

    places: DisruptionBudget
    ledger: Ledger
    acknowledgements: Mapping[str, tuple[Acknowledgement, ...]] = field(default_factory=dict)
    pools: dict[PoolKey, str] = field(default_factory=dict)
    drains: int = 0
    undrained: int = 0
    begun: datetime | None = None
    slot_free_at: datetime | None = None
    stuck_at: datetime | None = None
    holding: set[str] = field(default_factory=set)
    schedules: Mapping[str, CaseSchedule] = field(default_factory=dict)
    plans: list[NodePlan] = field(default_factory=list)
    beside: tuple[Beside, ...] = ()

    def saved(self) -> Progress:
        """Return a copy, from which `restore` takes back what a node's failed decision left."""
        return replace(self, pools=dict(self.pools), holding=set(self.holding))

    def restore(self, before: Progress) -> None:
        """Take back all that changed since `before` was saved; `plans` only ever get whole plans."""
        self.places, self.ledger, self.pools = before.places, before.ledger, before.pools
        self.drains, self.undrained, self.holding = before.drains, before.undrained, before.holding
        self.begun, self.stuck_at = before.begun, before.stuck_at
