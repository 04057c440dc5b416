"""What a pass knows about each node and its machine before it decides, and what its decisions share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial

from msgspec import Struct, field

from reconciler.model.clocks import OwnTimes, own_times
from reconciler.model.instructions import Instructions
from reconciler.model.keys import OwnKeys
from reconciler.model.machine import Vm, vm_of
from reconciler.model.node import Node
from reconciler.model.plan import Hold, JudgedEvent, NodePlan
from reconciler.model.problems import Faults
from reconciler.model.record import CaseRecord, KnownEvent, Record, State
from reconciler.model.schedule import CaseSchedule, Urgency
from reconciler.model.snapshot import Assessment, Ledger, NodeAssessment, Snapshot, Undone
from reconciler.model.values import replace
from reconciler.passes.decision import CaseDecision
from reconciler.profiles.case import not_dismissed
from reconciler.profiles.situation import Offer, Situation
from reconciler.settings.policies import NodePolicies
from reconciler.settings.schema import Settings
from reconciler.starts.budget import DisruptionBudget


class PassContext(Struct, frozen=True, dict=True):
    """What a pass decides from: what was read, the events that it means, the settings, and the moment (UTC).

    `faults` collects the errors of steps that go over all nodes: what fails holds its node only.
    `reading_names` are those of the enabled sources: no case waits for another source. `notice_names` are
    those that report maintenance minutes before it begins. `twins` are the nodes that have one VM with
    another node, each with that node's name. `upgraded` are the agent pools with a node that AKS upgrades.
    `awaits` returns what a feature still waits for before it lets anything follow the drain of a node.
    `vm_name` returns the name of a node's VM in signals, None if no source names it. `offers` are
    what can be asked of platforms with these settings, and `ends_machines` the names of the offers that end
    the machine of a node.
    """

    snapshot: Snapshot
    assessment: Assessment
    settings: Settings
    now: datetime
    faults: Faults
    reading_names: frozenset[str] = frozenset()
    twins: Mapping[str, str] = field(default_factory=dict)
    notice_names: frozenset[str] = frozenset()
    upgraded: frozenset[str] = frozenset()
    awaits: Callable[[NodeFacts, PassContext], str] = lambda _node, _context: ""
    vm_name: Callable[[Node], str | None] = lambda _node: None
    offers: tuple[Offer, ...] = ()
    ends_machines: frozenset[str] = frozenset()

    @cached_property
    def second(self) -> datetime:
        """The moment as records keep it: in whole seconds."""
        return self.now.replace(microsecond=0)

    @cached_property
    def fastest(self) -> datetime:
        """The moment by the fastest clock that counts: what is counted from it never ends early."""
        return self.now + self.snapshot.spread

    @cached_property
    def times(self) -> OwnTimes:
        """Which of our own times to believe."""
        return own_times(self.now, self.snapshot.disagreement)

    @cached_property
    def undone(self) -> Mapping[tuple[str, str], Undone]:
        """The writes that did not stay, by the name and the UID of the node."""
        return {(undone.node, undone.uid): undone for undone in reversed(self.snapshot.ledger.undone)}

    @cached_property
    def vms(self) -> Mapping[str, Sequence[str]]:
        """The nodes of each VM, by its name in signals (casefolded)."""
        names: dict[str, list[str]] = {}
        for node in self.snapshot.every_node():
            vm = self.faults.of(node.name, "its VM is not known", partial(self.vm_name, node), None)
            if vm is not None:
                names.setdefault(vm.casefold(), []).append(node.name)
        return names

    def new_record(self, node: Node) -> Record:
        """Return the record of a node that has none yet; it names our lock."""
        return Record(node.uid, lock=self.snapshot.reconciler.lock)

    @property
    def keys(self) -> OwnKeys:
        """Our labels and annotations."""
        return self.settings.keys.names


DEFAULT = "default"
"""The profile for the events of the platform, which every node has.

A record may contain more profiles, such as those that a feature runs before this one.
"""


class NodeFacts(Struct, frozen=True, dict=True):
    """One node with everything that the pass knows about it before it decides.

    `policies` say what events mean on it. `record` is the record as it applies now, `written` the one that
    the annotation has: a person's claim ends with the cordon, and times of the future count as now.
    `of_the_future` is whether it has such times.
    `case` is the profile's data about the node, with its claims. `gone` are its events that no source reports
    any more, and that none may hide. `untouched` is why the node must not be changed at all. `problem` is set
    if an error in this program kept the node from being judged. `urgency` is its place in the order of the
    nodes, None if no event requires a drain; `zone` comes next in that order, empty if it is not known.
    `schedule` is when its drain is planned to start, None without a case, and before all starts are planned.
    """

    read: Node
    assessment: NodeAssessment
    policies: NodePolicies
    judged: tuple[JudgedEvent, ...] = ()
    record: Record | None = None
    written: Record | None = None
    case: CaseRecord = CaseRecord()
    gone: tuple[KnownEvent, ...] = ()
    untouched: Hold | None = None
    of_the_future: bool = False
    problem: str = ""
    urgency: Urgency | None = None
    zone: str = ""
    schedule: CaseSchedule | None = None
    instructions: Instructions = Instructions()

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.read.name

    @cached_property
    def current(self) -> tuple[JudgedEvent, ...]:
        """The events without those that are ignored because someone uncordoned the node."""
        return not_dismissed(self.case, self.judged)

    @property
    def attempts(self) -> int:
        """How many attempts at the drain the record counts, 0 before the first."""
        return self.case.drain.attempt if self.case.drain is not None else 0

    @property
    def state(self) -> State:
        """The state before the pass; a drain by hand is maintenance."""
        by_hand = self.record is not None and self.record.claimed_by
        return State.IN_MAINTENANCE if by_hand else self.case.state


class Progress(Struct):
    """Places taken, the last start, and drains in progress, after the nodes so far.

    `drains` counts the orders that use a slot. `holding` are the nodes whose drains hold one and that have no
    decision yet: each node takes only itself out. `undrained` counts the nodes for which our own node waits,
    and `begun` is when the drain of the last of them began (UTC). `slot_free_at` is when the first slot may
    become free, and `stuck_at` when our own node may no longer wait for one of the others (UTC). `plans` has
    the decisions so far, by node. `deciders` are the features that decide about nodes.
    """

    places: DisruptionBudget
    ledger: Ledger
    drains: int = 0
    undrained: int = 0
    begun: datetime | None = None
    slot_free_at: datetime | None = None
    stuck_at: datetime | None = None
    holding: set[str] = field(default_factory=set)
    plans: dict[str, NodePlan] = field(default_factory=dict)
    deciders: tuple[Decider, ...] = ()

    def saved(self) -> Progress:
        """Return a copy, from which `restore` takes back what a node's failed decision left.

        It copies no collection, because every node makes one.
        """
        return replace(self)

    def restore(self, before: Progress) -> None:
        """Take back what changed since `before` was saved, but for `holding`: the node is decided now.

        `plans` only ever get whole plans.
        """
        before.places.holders.forget_later()
        self.places, self.ledger = before.places, before.ledger
        self.drains, self.undrained = before.drains, before.undrained
        self.begun, self.stuck_at = before.begun, before.stuck_at


class DrainWait(Struct, frozen=True):
    """How a feature holds a recorded drain of a cordoned node, before it evicts any pod.

    `hold` is why the drain waits, None if it waits no more. `since` is from when on the record that was read
    says that it waits (UTC), None if it says nothing.
    """

    hold: Hold | None = None
    since: datetime | None = None


_NO_WAIT = DrainWait()


class Decider:
    """What a feature decides in one pass, about one node after the other, before the platform's profile.

    A subclass inherits that it decides nothing. `notes` are about the whole cluster, one sentence each.
    """

    notes: tuple[str, ...] = ()

    def decide(
        self, decision: CaseDecision, node: NodeFacts, situation: Situation, context: PassContext
    ) -> tuple[NodeFacts, Situation]:
        """Return both with what the feature says to that profile; add to the decision what it does first.

        `left` and what follows it up to `of_features` may change, `tasks` and `notices`, and `drain`, which
        is then the order for the drain that the feature waits for. Nothing else may.
        """
        del decision, context
        return node, situation

    def follow(self, decision: CaseDecision, node: NodeFacts, context: PassContext) -> DrainWait:
        """Add what the feature holds and does in the case; return how it holds the drain.

        The state machine has run, and the drain has not been followed yet. `record`, `holds` and `tasks` of
        the decision may change, and nothing else.
        """
        del decision, node, context
        return _NO_WAIT

    def finish(self, decision: CaseDecision, node: NodeFacts, context: PassContext) -> None:
        """Add to the decision what the feature has to say, once all facts of the case are known.

        `drain`, `pending` and `noted` of the decision may change, and nothing else.
        """

    def note(self, decision: CaseDecision, node: NodeFacts, progress: Progress) -> None:
        """Show the nodes that come later in the pass what was decided about this one."""


def _key(node: Node) -> Vm | str | None:
    # Two spellings of one VM are the same VM.
    return (vm_of(node.provider_id) or node.provider_id.strip().casefold()) if node.provider_id else None


def twins_of(nodes: Iterable[Node], faults: Faults | None = None) -> Mapping[str, str]:
    """Return the names of the nodes whose providerID another node has too, each with one such node's name."""
    faults = Faults() if faults is None else faults
    names: dict[Vm | str, list[str]] = {}
    for node in nodes:
        key = faults.of(node.name, "its VM is not known", partial(_key, node), None)
        if key is not None:
            names.setdefault(key, []).append(node.name)
    found: dict[str, str] = {}
    for together in names.values():
        if len(together) > 1:
            first, second, *_ = sorted(together)
            found |= {name: second if name == first else first for name in together}
    return found
