"""What a source or a feature gives to a pass: protocols, and values whose parts are in the order of the flow.

A part that a feature does not need is left out. The core asks each part of all of them, see parts.py. A
source that queries a service is a PolledSource, see polled.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Protocol

from msgspec import Struct, field

from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.event import Reading
from reconciler.model.holds import HoldKind
from reconciler.model.instructions import Waives
from reconciler.model.machine import Machine, MachineRef
from reconciler.model.node import Node
from reconciler.model.outcome import ActionKind
from reconciler.model.plan import NodePart, NodePlan
from reconciler.model.polling import AnyMemory
from reconciler.model.ports import Outside
from reconciler.model.problems import Gaps
from reconciler.model.record import CaseRecord, Record, RecordPart
from reconciler.model.sayings import Saying
from reconciler.model.snapshot import Agents, LedgerPart, ServerVersion, Snapshot
from reconciler.model.tasks import Clients
from reconciler.model.writes import Publication
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.node_facts import Decider, NodeFacts, PassContext
from reconciler.profiles.situation import Offer
from reconciler.settings.schema import Settings


class Wants(Struct, frozen=True):
    """What a source or a feature needs from the API server.

    For each node: the conditions of these types, and the annotations and labels with these keys.
    Annotations under our own prefix are always read. `agents` means the state of the node agent's
    DaemonSet, `remediator` AKS's remediator-config, `server` the version of the API server, `system_uuid` the
    UUID of each node's machine.
    """

    conditions: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    agents: bool = False
    remediator: bool = False
    server: bool = False
    system_uuid: bool = False


_NOTHING = Wants()


class SourceContext(Struct, frozen=True):
    """What a source may read besides the node; `now` is aware, UTC. `memories` are by the source's name."""

    settings: Settings
    now: datetime
    agents: Agents = Agents()
    memories: Mapping[str, AnyMemory] = field(default_factory=dict)
    server: ServerVersion = ServerVersion()


class Source(Protocol):
    """One source. It has no state and reads no clock. A subclass inherits defaults that fit most sources.

    `offers` are what it can ask of its platform.
    """

    offers: ClassVar[tuple[Offer, ...]] = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in settings, records and reports, which never changes."""

    @property
    @abstractmethod
    def reports_start(self) -> bool:
        """Whether it says when maintenance has started. If not, that begins once the node is drained."""

    @property
    @abstractmethod
    def who(self) -> str:
        """Who can make it readable again, and what to check; `{node}` stands for the name of the node."""

    @abstractmethod
    def enabled(self, settings: Settings) -> bool:
        """Whether the settings enable it. A disabled source reads nothing, and no case waits for it."""

    def reading_names(self, settings: Settings) -> Collection[str]:
        """Return every `Reading.source` that it can return: its own name, or several names.

        If an event on record came from one of these names and there is no reading with that name, the event
        counts as unknown, not as over.
        """
        del settings
        return (self.name,)

    def notice_names(self, settings: Settings) -> Collection[str]:
        """Return the reading names under which it reports planned maintenance minutes before it begins."""
        del settings
        return ()

    def changes_vms(self, settings: Settings) -> bool:
        """Whether the settings let it start something at a VM."""
        del settings
        return False

    def wants(self, settings: Settings) -> Wants:
        """Return what it needs from the API server, enabled or not."""
        del settings
        return _NOTHING

    def vm_name(self, node: Node) -> str | None:
        """Return the name of the node's VM in `Signal.resources`; None if its signals name no VMs."""
        del node
        return None

    @abstractmethod
    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return its readings of a node, none if it has nothing to do with the node.

        Raises nothing: unreadable data becomes an unknown reading with the reason.
        """


def readings_of(node: Node, sources: Iterable[Source], context: SourceContext) -> tuple[Reading, ...]:
    """Return what these sources say of a node. Each signal says whether its source reports the start."""
    readings: list[Reading] = []
    for source in sources:
        of_source = source.read(node, context)
        if not source.reports_start:
            of_source = tuple(
                replace(
                    reading, signals=tuple(replace(signal, reports_start=False) for signal in reading.signals)
                )
                if reading.signals
                else reading
                for reading in of_source
            )
        readings += of_source
    return tuple(readings)


class Observed(Struct, frozen=True):
    """What a pass has read before a feature reads more of some nodes; `now` is aware, UTC.

    `records` and `readings` are by the node's name, `memories` by the source's. `machine_of` returns the
    machine of a node as the first feature that knows it names it, None if none does.
    """

    nodes: tuple[Node, ...]
    records: Mapping[str, Record]
    memories: Mapping[str, AnyMemory]
    settings: Settings
    now: datetime
    readings: Mapping[str, tuple[Reading, ...]]
    machine_of: Callable[[Node], MachineRef | None]


class Fleet(Struct, frozen=True):
    """What objects and labels follow from: the plans, their nodes by name, and the moment (aware, UTC).

    `writes` are the changes of objects, once they are known.
    """

    plans: tuple[NodePlan, ...]
    nodes: Mapping[str, Node]
    settings: Settings
    now: datetime
    snapshot: Snapshot = Snapshot(())
    writes: tuple[Publication, ...] = ()

    @property
    def uids(self) -> Collection[str]:
        """The UIDs of all nodes, also of those that rest."""
        uids = self.snapshot.aside.uids
        return uids if uids is not None else frozenset(node.uid for node in self.nodes.values())


class ObjectChanges(Struct, frozen=True):
    """Writes, and the moments (UTC) at which time alone changes an object."""

    writes: tuple[Publication, ...] = ()
    moments: tuple[datetime, ...] = ()


ReadObjects = tuple[Mapping[str, Sequence[Any]], tuple[str, ...]]
"""Objects by sign, and a message for each kind that can't be read."""


class ShownObjects(Struct, frozen=True):
    """Objects that show cases beside nodes. `kind` names them for people, in the plural.

    `read` reads them, and notes in the gaps what we may not read; it gets the value in the ledger, because
    objects may be left though the settings do not show them any more. `changes` returns what to write so that
    they agree with the plans. `deletions` reads those of the installation with this prefix, and returns what
    deletes all of them, for a release of the whole cluster. It raises ClusterError.
    """

    kind: str
    read: Callable[[Outside, Settings, Any, Gaps], ReadObjects]
    changes: Callable[[Mapping[str, Sequence[Any]], Fleet], ObjectChanges]
    deletions: Callable[[Clients, str], tuple[Publication, ...]]


CalendarsNow = tuple[Mapping[str, CalendarText], tuple[str, ...]]
"""What counts of each calendar, by its name, and notes for people."""


LabelsOf = Callable[[Node], Mapping[str, str]]
"""Returns the labels that a node should have."""


class Deciding(Struct, frozen=True):
    """How a feature decides. `begin` makes, from what is known of all nodes, what decides about each of them.

    It returns None if there is nothing to decide in this pass.
    `settled` returns, once in a pass, what says whether there is nothing to decide about a node until the
    node itself changes; None if the feature decides about nodes with news only.
    """

    begin: Callable[[Sequence[NodeFacts], PassContext], Decider | None]
    settled: Callable[[Settings], Callable[[Node], bool] | None] | None = None


class Feature(Struct, frozen=True):
    """What a feature gives to a pass, in the order of the flow. `prefix` is that of our keys.

    `holds` are its kinds of holds that come from no check, `actions` those of its tasks and publications,
    `offers` what it can ask of a platform. `record` is what it keeps in the record of a case, and `ledger`
    what it keeps in the ledger, None if nothing; `keeps` returns the value that the ledger has after a pass,
    from the value before. `claims` are the kinds of its claims on the cordon and the drain of a node.
    `reads` says which parts of nodes it reads; those of signs also while the settings have them off, because
    they are then removed. `machine_of` returns the machine of a node, None if it knows nothing of it, and
    sends no request. `adopts` names the tool whose cordon on a node without a record is taken over, empty if
    it is none that the feature knows. `observe` reads what the feature decides from beside all that,
    through `Outside.beside`: a bounded number of things. What can't be read is a part of its answer. The
    snapshot has it under the feature's name. `machines` reads, in the same way, the machines of those nodes
    for which the feature decides what becomes of them, by the node's name. A node that breaks what `decide`
    does is one of the faults.
    `awaits` says, behind the name of a drained node, why nothing may follow its drain yet; empty if it may.
    `waives` returns, for a node and its case, what the drain for each event does not wait for; None if it
    waits for everything. `sayings` returns what people say of a node with annotations of the feature, for the
    lines about what people do. `remedies` are the commands by which a person can let the drain of a node
    begin that is not drained in time; none where that would not help.

    Signs show a case on its node to other tools. `bears_signs` says whether a node has one, which may have to
    change even if the node has no event, and `signs` returns the changes and what goes with them. `outlived`
    returns those that remove what must not stay on a node that has left the fleet, `taken_back` those for
    every node that is not ours to change, and `removed` those that remove everything, for a release.
    `objects` show cases beside nodes.

    `calendars` returns what counts at a moment (UTC) of the calendars at these places: what was read of them
    now, or what the value in the ledger has of them.

    `says` returns what it says of nodes in the plan once all of them are decided, by their names.

    `labels` returns, once in a pass, what gives the labels of a managed node, with a case or without, under
    keys of other programs; None while the feature is off. They are written last, and stay then.
    """

    name: str
    holds: tuple[HoldKind, ...] = ()
    actions: tuple[ActionKind, ...] = ()
    offers: tuple[Offer, ...] = ()
    record: RecordPart[Any] | None = None
    ledger: LedgerPart[Any] | None = None
    claims: tuple[str, ...] = ()
    reads: Callable[[Settings], Wants] | None = None
    machine_of: Callable[[Node, Settings], MachineRef | None] | None = None
    adopts: Callable[[Node, Settings], str] | None = None
    observe: Callable[[Outside, Observed], Any] | None = None
    machines: Callable[[Outside, Observed], Mapping[str, Machine]] | None = None
    objects: ShownObjects | None = None
    calendars: (
        Callable[[Sequence[CalendarPlace], Mapping[str, CalendarText], Any, datetime], CalendarsNow] | None
    ) = None
    decide: Deciding | None = None
    waives: Callable[[Node, CaseRecord, Settings], Waives | None] | None = None
    sayings: Callable[[Node, str], Iterable[Saying]] | None = None
    remedies: Callable[[CaseDecision, NodeFacts, PassContext], Sequence[str]] | None = None
    awaits: Callable[[NodeFacts, PassContext], str] | None = None
    bears_signs: Callable[[Node, str], bool] | None = None
    signs: Callable[[CaseDecision, NodeFacts, PassContext], NodeSigns] | None = None
    outlived: Callable[[Node, str], NodeSigns] | None = None
    taken_back: Callable[[Node, str], NodeSigns] | None = None
    keeps: Callable[[Any, Fleet], Any] | None = None
    says: Callable[[Fleet], Mapping[str, NodePart]] | None = None
    labels: Callable[[Fleet], LabelsOf | None] | None = None
    removed: Callable[[Node, str], NodeSigns] | None = None
