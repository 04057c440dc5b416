"""What a pass has decided: for each node its state, checks, holds and actions, and the names of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from reconciler.model.case_outcome import CaseOutcome, outcome_at_end, outcome_of
from reconciler.model.clocks import Disagreement
from reconciler.model.content import CalendarText, SettingsVersion
from reconciler.model.drains import Blocker, DrainOrder, DrainProgress
from reconciler.model.event import MaintenanceEvent
from reconciler.model.instructions import Ended, Instructions, Kept, PersonHold, Waiver
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.messages import ProfileMessage
from reconciler.model.outcome import (
    CORDON,
    DRAIN,
    PUBLISH,
    RECORD,
    STOP_DRAIN,
    UNCORDON,
    ActionKind,
    Place,
    WaitsFor,
)
from reconciler.model.problems import Unseen
from reconciler.model.reconciler import Reconciler
from reconciler.model.record import CaseRecord, KnownEvent, State
from reconciler.model.sayings import NodeSayings
from reconciler.model.schedule import CaseSchedule, Exemption, StartTimes, Urgency
from reconciler.model.snapshot import FleetNode, Ledger, Undone
from reconciler.model.tasks import Task
from reconciler.model.unguarded import Unguarded
from reconciler.model.writes import NodeWrite, Publication


class Verdict(StrEnum):
    """A check's answer."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class CheckAnswer(Struct, frozen=True):
    """One check's answer, with a reason for people and, if known, the time when it changes (UTC).

    `holds` is False for a check that only states a fact: its 'no' is no reason to wait. `waits_for` comes
    from the check's registration. `ordinarily` says it in words if the check passes without a reason. `who`
    can end it, and `by_itself` is whether it ends without a person, if the name alone does not say so.
    """

    name: str
    verdict: Verdict
    reason: str
    until: datetime | None = None
    holds: bool = True
    waits_for: WaitsFor = WaitsFor.OTHER
    ordinarily: str = ""
    who: str = ""
    by_itself: bool = False

    @property
    def words(self) -> str:
        """The answer as a sentence: the reason, or what is ordinarily the case."""
        return self.reason or self.ordinarily


class Hold(Struct, frozen=True):
    """One reason why a pass does nothing now; `until` is when that ends at the latest, if known (UTC).

    `code` is the name of a check, or that of a `HoldKind`. `asks` is when to ask again whether it has ended,
    for what no watch reports. `who` and `by_itself` say who can end it, if the code alone does not.
    """

    node: str
    code: str
    reason: str
    until: datetime | None = None
    waits_for: WaitsFor = WaitsFor.OTHER
    asks: datetime | None = None
    who: str = ""
    by_itself: bool = False


class Transition(Struct, frozen=True):
    """One step of one profile's state machine, and its reason; `drains` is whether a drain begins with it."""

    profile: str
    before: State
    after: State
    because: str
    drains: bool = False

    @property
    def begins(self) -> bool:
        """Whether the node goes out of service with this step."""
        return self.after is State.IN_MAINTENANCE and self.before is not State.IN_MAINTENANCE


class NoticeType(StrEnum):
    """The two types of a Kubernetes Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Notice(Struct, frozen=True):
    """A Kubernetes Event to write on the node; it belongs to a transition, or to a fact of the record.

    Two notices about one node with the same `once` are the same one, so it does no harm to send it again.
    `named_as_node` gives the Event the name of the node as its UID, as kubelets do.
    """

    reason: str
    message: str
    type: NoticeType = NoticeType.NORMAL
    once: str = ""
    named_as_node: bool = False


class Opening(Struct, frozen=True):
    """Whether windows and deadline allow the start of a drain now.

    `words` says it as a sentence, and `overruled` names the window or freeze that the deadline overruled.
    """

    allowed: bool = False
    words: str = ""
    overruled: str = ""

    @property
    def reason(self) -> str:
        """The words, with what is overruled."""
        return f"{self.words}, which overrules: {self.overruled}" if self.overruled else self.words


class SharedEvent(Struct, frozen=True):
    """An event of several nodes that ends by us only once all of them are drained.

    `id` is its ID (casefolded), `nodes` are the names of the nodes, sorted.
    """

    id: str
    nodes: tuple[str, ...]


class Ending(Struct, frozen=True):
    """A way to end an event that the settings want: what is asked of a platform once the node is drained.

    `offer` is the name of the offer by which that is asked, and `words` say how the event ends then, as a
    sentence. `refused` says why it can't on this node, empty if it can; `until` is when this changes (UTC),
    if that is known. `shared` are the events for which the platform waits for other nodes as well, and `want`
    is the verb for what the settings of each of these nodes have to do with it.
    """

    offer: str
    words: str
    refused: str = ""
    until: datetime | None = None
    shared: tuple[SharedEvent, ...] = ()
    want: str = ""


class AfterDrain(Struct, frozen=True):
    """How an event ends once its node is drained.

    `endings` are the ways that the settings want; the first one is told. They may also accept that we start
    maintenance which the platform has planned: `offered` says in words who offers that, empty if nobody does.
    `refused` says why none of that can be on this node, so that only the platform ends it; empty if one of it
    can, or if the settings want none.
    """

    endings: tuple[Ending, ...] = ()
    offered: str = ""
    refused: str = ""

    @property
    def by_us(self) -> bool:
        """Whether we end it."""
        return bool(self.endings or self.offered) and not self.refused

    @property
    def until(self) -> datetime | None:
        """When this changes (UTC), None if that is not known."""
        return min((ending.until for ending in self.endings if ending.until is not None), default=None)

    def by(self, offer: str) -> bool:
        """Whether the settings want that it ends by the offer of this name."""
        return any(ending.offer == offer for ending in self.endings)

    @property
    def words(self) -> str:
        """How it ends, in words; empty if the settings leave it to the platform."""
        if self.refused:
            return f"only the platform ends it: {self.refused}"
        if self.endings:
            return self.endings[0].words
        return (
            f"once the node is drained, {self.offered} is asked to do its maintenance" if self.offered else ""
        )


class JudgedEvent(Struct, frozen=True):
    """An event, judged by the settings.

    `asks` is whether it requires a drain of the node, `starts` whether a drain may still begin for it (not
    for a pause that has started), `because` why or why not. `deadline` is `not_before` minus the lead time
    (UTC). `until` is when what the opening says changes. `times` says when a drain may start, None if the
    event requires none, and `may_start` whether it may now. `due` is whether it is imminent, so that nothing
    is waited for. `lost_from` is the moment from which the node may be lost before a drain ends (UTC): in the
    past for an event that has started, that has a date which can't be read, or that has no date and is of an
    exempt kind. None: not known. `far`: its earliest start is more than an hour away. `waits_for_notice`: it
    is a plan that names days, and another source reports its moment minutes before. `kept` is what the
    instructions of people, or a missing permission, keep its drain waiting for. `exempt` is what its start
    does without, and from when on. `waiver` is that of the person who began its drain, None without one.
    """

    event: MaintenanceEvent
    asks: bool
    starts: bool
    because: str
    deadline: datetime | None = None
    opening: Opening = Opening()
    may_start: bool = False
    until: datetime | None = None
    due: bool = False
    lost_from: datetime | None = None
    after_drain: AfterDrain = AfterDrain()
    times: StartTimes | None = None
    far: bool = False
    waits_for_notice: bool = False
    kept: Kept = Kept()
    exempt: Exemption = Exemption()
    waiver: Waiver | None = None

    @property
    def struck(self) -> bool:
        """Whether the platform has started the event, and it requires a drain: the node goes down anyway."""
        return self.asks and self.starts and self.event.started

    def cannot_wait(self, now: datetime) -> bool:
        """Whether the event requires a drain, and the node may be lost from `now` (aware) on.

        It then waits for no slot, if its kind is exempt, and our own node waits for no other.
        """
        return self.asks and self.starts and self.lost_from is not None and self.lost_from <= now


class PodVerdict(Struct, frozen=True):
    """What a drain does with one pod: evict, delete, skip, keep, wait or refuse; and all reasons."""

    pod: str
    uid: str
    action: str
    reasons: tuple[str, ...] = ()


class Preview(Struct, frozen=True):
    """What draining a node would do, before anything moves.

    `groups` are those that the drain disrupts on other nodes as well, a sentence each. `unknown` is what we
    may not read.
    """

    pods: tuple[PodVerdict, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    room: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    unknown: tuple[Unseen, ...] = ()


class Actions(Struct, frozen=True):
    """The actions for one node.

    `publications` only show something to other tools: they are not counted as actions, and are sent last.
    `pending` are notices about facts that the record had before this pass, or that `write` takes out of it
    because the case ends: such a write follows them. `notices` are sent after `write`, and `noted` then
    records that both were sent. `tasks` are performed at the place of their kind, before or after `write`.
    `messages` of profiles are kept for delivery before `write`, which has the time. `undone` is what did not
    stay of the same write in earlier passes. `spaced`: the ledger has to note the start of the node before
    `write`.
    """

    write: NodeWrite | None = None
    drain: DrainOrder | None = None
    stop_drain: bool = False
    tasks: tuple[Task, ...] = ()
    notices: tuple[Notice, ...] = ()
    publications: tuple[Publication, ...] = ()
    pending: tuple[Notice, ...] = ()
    noted: NodeWrite | None = None
    messages: tuple[ProfileMessage, ...] = ()
    undone: Undone | None = None
    spaced: bool = False

    @property
    def any(self) -> bool:
        """Whether there is any action; a patch that only shows something to other tools is none."""
        written = self.write is not None and not self.write.only_shows
        return written or bool(self.at(Place.BEFORE)) or self.drain is not None or self.stop_drain

    @property
    def deletes_node(self) -> bool:
        """Whether the node's machine is to be deleted."""
        return any(task.action.deletes for task in self.tasks)

    def at(self, place: Place) -> tuple[Task, ...]:
        """Return the tasks that are performed at this place, in their order."""
        return tuple(task for task in self.tasks if task.action.place is place)


class DrainState(Struct, frozen=True):
    """The progress of a node's drain: the pods that it keeps, the drainer's report, and a preview.

    `stays` says which pods a drain that is done has left on the node, empty if there are none.
    """

    kept: tuple[Blocker, ...] = ()
    progress: DrainProgress | None = None
    preview: Preview | None = None
    stays: str = ""


class NodePart(Struct, frozen=True):
    """What a feature says of a node in a plan. A subclass has the feature's values, which its columns show.

    The core asks only what follows from it for passes and reports; by itself nothing does.
    """

    @property
    def news(self) -> bool:
        """Whether the report includes the node for that alone."""
        return False

    @property
    def states(self) -> Mapping[str, tuple[State, State]]:
        """The state of each profile of the feature before and after the pass, by its name."""
        return {}

    @property
    def moved(self) -> Mapping[str, State]:
        """The profiles that the pass has moved, with the state of each after it. A pass moves each once."""
        return {name: after for name, (before, after) in self.states.items() if before is not after}

    def moments(self, now: datetime) -> Iterable[datetime]:
        """Yield when it changes by time alone (UTC); `now` is aware."""
        del now
        return ()


class PlannedNode(Struct, frozen=True):
    """Which node a plan is about; zone and pool are empty if they are not known."""

    node: str
    zone: str
    pool: str


class NodeStatus(Struct, frozen=True):
    """A node as the pass has read it.

    `unread` are the sources that can't be read, each with the reason. `urgency` is its place in the order of
    the nodes, None if no event requires a drain. `instructions` are those of people that apply to it.
    """

    unschedulable: bool = False
    unread: tuple[tuple[str, str], ...] = ()
    urgency: Urgency | None = None
    instructions: Instructions = Instructions()


class NodePlan(PlannedNode, frozen=True):
    """All decisions of a pass about one node: what was seen, what follows, and the actions.

    `record` is the profile's data about the node after this pass, `ended` the case that ended with it. `uid`
    is the node's, empty in the plan of a node that no longer exists. `schedule` is when its drain is planned
    to start, None if it has no case. `struck` says that this pass has found out that the case is late or
    missed. `unguarded` is why nobody drains a node that needs it, or brings it back, None for any other.
    `goes_by_us` says that we have asked for the end of its machine, or prepared it: if the node is deleted,
    that is why. `of_features` is what features say of it, by their names.
    """

    before: State
    after: State
    events: tuple[JudgedEvent, ...] = ()
    checks: tuple[CheckAnswer, ...] = ()
    transitions: tuple[Transition, ...] = ()
    holds: tuple[Hold, ...] = ()
    status: NodeStatus = NodeStatus()
    record: CaseRecord | None = None
    todo: Actions = Actions()
    draining: DrainState = DrainState()
    ended: CaseRecord | None = None
    uid: str = ""
    schedule: CaseSchedule | None = None
    struck: bool = False
    unguarded: Unguarded | None = None
    goes_by_us: bool = False
    of_features: Mapping[str, NodePart] = field(default_factory=dict)

    @property
    def has_news(self) -> bool:
        """Whether there is more about the node than a source that can't be read.

        What a person has said of it is news also without an event: a hold beats the next deadline.
        """
        said = self.status.instructions != Instructions()
        news = self.events or self.holds or self.acts or self.transitions or said
        return bool(news) or self.after is not State.OPERATIONAL

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Which sources can't be read, and why, a sentence each."""
        return tuple(f"{source}: {because}" for source, because in self.status.unread)

    @property
    def silent(self) -> tuple[str, ...]:
        """The names of the sources that can't be read."""
        return tuple(source for source, _ in self.status.unread)

    @property
    def outcome(self) -> CaseOutcome | None:
        """What has become of the node's case, None if there is none."""
        if self.ended is not None:
            return outcome_at_end(self.ended)
        return outcome_of(self.record) if self.record is not None else None

    @property
    def case_events(self) -> Sequence[MaintenanceEvent | KnownEvent]:
        """The events of the case: those that require its drain, or those that its record knows."""
        asking = [event.event for event in self.events if event.asks]
        return asking or (self.record.events if self.record is not None else ())

    @property
    def platform_time(self) -> datetime | None:
        """The earliest moment at which the platform may start the maintenance of the case, None if unknown.

        It is UTC, and in the past for a maintenance that may have started.
        """
        return min(
            (case_event.not_before for case_event in self.case_events if case_event.not_before), default=None
        )

    @property
    def acts(self) -> bool:
        """Whether the plan has an action for this node."""
        return self.todo.any

    @property
    def starts(self) -> bool:
        """Whether the node goes out of service with this pass."""
        return any(step.begins for step in self.transitions)

    @property
    def drain_begins(self) -> bool:
        """Whether a drain of the node begins with this pass, also one of a node that is cordoned already."""
        return any(step.drains for step in self.transitions)


class BudgetUse(Struct, frozen=True):
    """The whole fleet's budget after this plan: all places, and which node holds one, with the reason."""

    limit: int
    fleet: int
    holders: tuple[tuple[str, str], ...] = ()


class SourceState(Struct, frozen=True):
    """What one source answered in a pass: the number of nodes with an event, without one, and unknown.

    `name` is that of its readings. `last` is its last answer about any node (UTC), None if it has none.
    """

    name: str
    last: datetime | None = None
    events: int = 0
    quiet: int = 0
    unknown: int = 0


class ProfileNodes(Struct, frozen=True):
    """How many managed nodes have a profile of the settings in a state, None where that can't be read."""

    profile: str
    state: State | None
    count: int


class PlanSettings(Struct, frozen=True):
    """Which settings a plan follows: the version, None if they are not from a file, and the times of theirs.

    `time_zone` is the IANA name of the zone in which people read moments. `calendars` is what was read of the
    calendars of the settings, by name. `prefix` is that of our keys. `rejected` says why the settings can't
    be used: the plan shows what the default ones find, and nobody acts by it.
    """

    version: SettingsVersion | None = None
    time_zone: str = "UTC"
    calendars: Mapping[str, CalendarText] = field(default_factory=dict)
    prefix: str = DEFAULT_PREFIX
    rejected: str = ""


class Plan(Struct, frozen=True):
    """The decisions of a pass, with the nodes in the order in which the pass handles them.

    `next_change` is the earliest moment at which the plan changes if the cluster stays the same (UTC).
    `publications` show the whole plan to other tools. `managed` is the number of managed nodes. `unseen` is
    what could not be read because a permission is missing. `uids` are those of all nodes that exist. `labels`
    are those of the nodes in the plan, as far as the settings use them. `fleet` are all nodes that exist.
    `sources` is what each source answered, sorted by name. `reconciler` is who acts on the nodes.
    `profiles` counts the nodes of each profile of the settings by their states. `disagreement` is what the
    clocks of the API servers disagree about: then `now` is the time of the slowest one that counts. `holds`
    are those of people for all nodes, or for a pool, and `ended` is who ended the last of them, or released
    all nodes. `sayings` is all that people say of single nodes, by name; None where that is not known.
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
    settings: PlanSettings = PlanSettings()
    unseen: tuple[Unseen, ...] = ()
    uids: frozenset[str] = frozenset()
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fleet: tuple[FleetNode, ...] = ()
    sources: tuple[SourceState, ...] = ()
    reconciler: Reconciler = Reconciler()
    profiles: tuple[ProfileNodes, ...] = ()
    disagreement: Disagreement | None = None
    holds: tuple[PersonHold, ...] = ()
    ended: tuple[Ended, ...] = ()
    sayings: Mapping[str, NodeSayings | None] = field(default_factory=dict)


def actions(plan: NodePlan) -> tuple[ActionKind, ...]:
    """Return the actions for the node, in order."""
    todo = plan.todo
    return (
        *((STOP_DRAIN,) if todo.stop_drain else ()),
        *(task.action for task in todo.at(Place.BEFORE)),
        *((write_kind(todo.write),) if todo.write is not None else ()),
        *((DRAIN,) if todo.drain is not None else ()),
        *(task.action for task in (*todo.at(Place.AFTER_DRAIN), *todo.at(Place.END))),
        *(publication.action for publication in todo.publications),
    )


def write_kind(write: NodeWrite) -> ActionKind:
    """Return what a node's patch is."""
    if write.unschedulable is not None:
        return CORDON if write.unschedulable else UNCORDON
    return PUBLISH if write.only_shows else RECORD


def outcome_name(plan: NodePlan) -> str:
    """Return the name of the outcome of the node's patch, empty if there is no patch.

    An outcome distinguishes a step of the state machine from other changes of the record.
    """
    if plan.todo.write is None:
        return ""
    kind = write_kind(plan.todo.write)
    if kind is not RECORD:
        return kind.name
    moved = plan.transitions and plan.after is not plan.before
    return f"move to {plan.after}" if moved else "update record"
