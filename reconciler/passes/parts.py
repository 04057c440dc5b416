"""What takes part in passes beside the core: all sources and features, asked together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeVar

from msgspec import Struct

from reconciler import plugins
from reconciler.model import record, snapshot
from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.errors import LedgerUnreadable, ReconcilerError
from reconciler.model.instructions import Waives
from reconciler.model.machine import Machine, MachineRef
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.polling import AnyMemory
from reconciler.model.ports import Outside
from reconciler.model.problems import Gaps, internal
from reconciler.model.record import CaseRecord
from reconciler.model.sayings import Saying
from reconciler.model.snapshot import Ledger, LedgerPart
from reconciler.model.values import replace
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.node_facts import Decider, NodeFacts, PassContext
from reconciler.passes.plugin import (
    CalendarsNow,
    Feature,
    Fleet,
    LabelsOf,
    ObjectChanges,
    Observed,
    ReadObjects,
    Source,
    Wants,
)
from reconciler.passes.polled import PolledSource
from reconciler.profiles.endings import Ends
from reconciler.profiles.situation import Offer
from reconciler.settings.schema import Settings

Value = TypeVar("Value")
Asked = TypeVar("Asked")


class Sources:
    """The sources of a program, in the order of a node's readings in reports.

    `polled` are those that query a service, enabled or not.
    """

    def __init__(self, *sources: Source) -> None:
        """Take these sources."""
        self.all = sources
        # A pass asks many times, and Python takes long to say what is of an abstract class.
        self.polled: tuple[PolledSource[Any, Any], ...] = tuple(
            source for source in sources if isinstance(source, PolledSource)
        )

    def switched_on(self, settings: Settings) -> tuple[Source, ...]:
        """Return the sources that the settings enable."""
        return tuple(source for source in self.all if source.enabled(settings))

    def reading_names(self, settings: Settings) -> frozenset[str]:
        """Return the names that readings of the enabled sources can have."""
        return frozenset(
            name for source in self.switched_on(settings) for name in source.reading_names(settings)
        )

    def notice_names(self, settings: Settings) -> frozenset[str]:
        """Return the names of the readings that report maintenance minutes before it begins."""
        return frozenset(
            name for source in self.switched_on(settings) for name in source.notice_names(settings)
        )

    def change_vms(self, settings: Settings) -> bool:
        """Whether the settings let any enabled source start something at a VM."""
        return any(source.changes_vms(settings) for source in self.switched_on(settings))

    def vm_name(self, node: Node) -> str | None:
        """Return the name of a node's VM in signals, None if no source names it."""
        names = (source.vm_name(node) for source in self.all)
        return next((name for name in names if name is not None), None)

    def wants(self, settings: Settings) -> Wants:
        """Return what all sources together read.

        Parts of nodes are read even while a source is disabled, so that enabling it changes no watch. What
        needs a separate request is read only for enabled sources.
        """
        wanted = [(source.enabled(settings), source.wants(settings)) for source in self.all]
        return _all_wants(
            each if on else replace(each, agents=False, remediator=False, server=False) for on, each in wanted
        )

    def changes(self, memories: Mapping[str, AnyMemory], now: datetime) -> Iterable[datetime]:
        """Return the moments after `now` at which readings of polled sources may change by time alone."""

        def ask(source: PolledSource[Any, Any]) -> tuple[datetime, ...]:
            return tuple(source.changes(memories[source.name], now))

        known = [(source.name, source) for source in self.polled if source.name in memories]
        found, _ = _each("when {} changes is not known", known, ask)
        return chain.from_iterable(found.values())


def _each(
    what: str, asked: Iterable[tuple[str, Asked]], ask: Callable[[Asked], Value | None]
) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Return what each of these plugins answers, by its name, and a note for each that failed.

    The boundary around what a plugin is asked beside a node: its error harms that plugin only. `what` says
    what is not known then, with {} for the name.
    """
    answers: dict[str, Value] = {}
    notes: list[str] = []
    for name, plugin in asked:
        try:
            answer = ask(plugin)
            if answer is not None:
                answers[name] = answer
        except LedgerUnreadable as error:
            notes.append(str(error))
        except ReconcilerError as error:
            notes.append(f"{what.replace('{}', name)}: {error}")
        except Exception as error:  # noqa: BLE001 - what is wrong with a plugin harms that plugin only
            unknown = what.replace("{}", name)
            notes.append(f"internal error: {unknown}: {internal(unknown, error)}")
    return answers, tuple(notes)


class Parts(Struct, frozen=True, dict=True):
    """The sources and the features of a program. What all features give together is that of the fold."""

    sources: Sources
    features: tuple[Feature, ...] = ()

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """What can be asked of platforms, also by sources and features that the settings have off."""
        of_sources = (offer for source in self.sources.all for offer in source.offers)
        of_features = (offer for feature in self.features for offer in feature.offers)
        return (*of_sources, *of_features)

    def offers_of(self, settings: Settings) -> tuple[Offer, ...]:
        """Return what can be asked of platforms with these settings: a source that is off offers nothing."""
        off = {
            offer.name
            for source in self.sources.all
            if source.offers and not source.enabled(settings)
            for offer in source.offers
        }
        return tuple(offer for offer in self.offers if offer.name not in off)

    @cached_property
    def ends(self) -> tuple[Ends, ...]:
        """The questions how an event ends. What features do is told before what is asked of clouds."""
        return tuple(offer.ends for offer in reversed(self.offers) if offer.ends is not None)

    def wants(self, settings: Settings) -> Wants:
        """Return what sources and features read."""
        of_features = (feature.reads(settings) for feature in self.features if feature.reads)
        return _all_wants([self.sources.wants(settings), *of_features])

    @property
    def in_record(self) -> frozenset[str]:
        """The names of the parts of the record that features keep there, and the kinds of their claims."""
        parts = frozenset(feature.record.name for feature in self.features if feature.record is not None)
        return parts.union(*(feature.claims for feature in self.features))

    @property
    def in_ledger(self) -> frozenset[str]:
        """The keys of the ledger under which plugins keep something."""
        of_features = (feature.ledger.name for feature in self.features if feature.ledger is not None)
        return frozenset((*of_features, *(source.kept.name for source in self.sources.polled)))

    def machine_of(self, node: Node, settings: Settings) -> MachineRef | None:
        """Return the machine of a node, None if no feature knows it."""
        machines = (feature.machine_of(node, settings) for feature in self.features if feature.machine_of)
        return next((ref for ref in machines if ref is not None), None)

    def adopts(self, node: Node, settings: Settings) -> str:
        """Return the tool whose cordon on this node a feature takes over, empty if there is none."""
        tools, _ = self._each(
            f"node {node.name}: its cordon is not adopted for {{}}",
            lambda feature: feature.adopts and feature.adopts(node, settings),
        )
        return next(filter(None, tools.values()), "")

    def observe(self, outside: Outside, observed: Observed) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Return what features have read for themselves, by feature, and a note for each that failed."""
        return self._each(
            "what {} needs of nodes can't be read",
            lambda feature: feature.observe and feature.observe(outside, observed),
        )

    def machines(self, outside: Outside, observed: Observed) -> tuple[Mapping[str, Machine], tuple[str, ...]]:
        """Return the machines that features read, by the node's name, and a note for each that failed."""
        found, notes = self._each(
            "machines are not known to {}",
            lambda feature: feature.machines and feature.machines(outside, observed),
        )
        return {node: machine for machines in found.values() for node, machine in machines.items()}, notes

    def read_objects(self, outside: Outside, settings: Settings, ledger: Ledger, gaps: Gaps) -> ReadObjects:
        """Return the objects that features show."""
        objects: dict[str, Sequence[Any]] = {}
        problems: list[str] = []
        for feature in self.features:
            if feature.objects:
                kept, lost = feature.ledger.known(ledger) if feature.ledger else (None, ())
                read, unread = feature.objects.read(outside, settings, kept, gaps)
                objects |= read
                problems += (*lost, *unread)
        return objects, tuple(problems)

    def deciders(self, nodes: Sequence[NodeFacts], context: PassContext) -> tuple[Decider, ...]:
        """Return what decides about these nodes, one after the other, in the order of the features."""
        begun = (feature.decide.begin(nodes, context) for feature in self.features if feature.decide)
        return tuple(decider for decider in begun if decider is not None)

    def awaits(self, node: NodeFacts, context: PassContext) -> str:
        """Return why a feature lets nothing follow the drain of a node yet, empty if all of them do."""
        found = (feature.awaits(node, context) for feature in self.features if feature.awaits)
        return next(filter(None, found), "")

    def waives(self, node: Node, case: CaseRecord, settings: Settings) -> Waives:
        """Return what the drain of a node for each event does not wait for, by the features."""
        asked = (feature.waives(node, case, settings) for feature in self.features if feature.waives)
        waived = [of for of in asked if of is not None]
        return lambda event: next((waiver for of in waived if (waiver := of(event)) is not None), None)

    def remedies(self, decision: CaseDecision, node: NodeFacts, context: PassContext) -> tuple[str, ...]:
        """Return the commands by which a person lets the drain of a missed node begin, by the features."""
        asked = (feature.remedies for feature in self.features if feature.remedies)
        return tuple(command for remedies in asked for command in remedies(decision, node, context))

    def settled(self, settings: Settings) -> Callable[[Node], bool] | None:
        """Return what says whether no feature has anything to decide about a node until it changes.

        None: no feature decides about nodes without news.
        """
        deciding = [feature.decide for feature in self.features if feature.decide]
        asked = (decide.settled(settings) for decide in deciding if decide.settled)
        decided = [settled for settled in asked if settled is not None]
        return (lambda node: all(settled(node) for settled in decided)) if decided else None

    def sayings(self, node: Node, prefix: str) -> tuple[Saying, ...]:
        """Return what people say of a node with annotations of features."""
        return tuple(
            said for feature in self.features if feature.sayings for said in feature.sayings(node, prefix)
        )

    def bears_signs(self, node: Node, prefix: str) -> bool:
        """Whether the node has a sign of ours."""
        return any(feature.bears_signs(node, prefix) for feature in self.features if feature.bears_signs)

    def signs(self, decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
        """Return the changes of all signs on a node."""
        return all_signs(feature.signs(decision, node, context) for feature in self.features if feature.signs)

    def outlived(self, node: Node, prefix: str) -> NodeSigns:
        """Return the changes that remove what must not stay on a node that has left the fleet."""
        return all_signs(feature.outlived(node, prefix) for feature in self.features if feature.outlived)

    def taken_back(self, node: Node, prefix: str, *, has_left: bool) -> NodeSigns:
        """Return the changes that take back what must not stay on a node that is not ours to change.

        A node that `has_left` the fleet also loses what it has outlived.
        """
        signs = [feature.taken_back(node, prefix) for feature in self.features if feature.taken_back]
        return all_signs([*signs, self.outlived(node, prefix)] if has_left else signs)

    def calendars(
        self, places: Sequence[CalendarPlace], read: Mapping[str, CalendarText], ledger: Ledger, now: datetime
    ) -> CalendarsNow:
        """Return what counts of the calendars `now` (UTC): what was read, or what a feature kept of them."""
        for feature in self.features:
            if feature.calendars:
                kept, lost = feature.ledger.known(ledger) if feature.ledger else (None, ())
                read, notes = feature.calendars(places, read, kept, now)
                return read, (*lost, *notes)
        return read, ()

    def kept(self, ledger: Ledger, fleet: Fleet) -> tuple[Ledger, tuple[str, ...]]:
        """Return the ledger with what plugins keep in it after this pass, and a note for each that can't."""
        notes: list[str] = []
        values: list[tuple[LedgerPart[Any], Callable[[], Any]]] = [
            (feature.ledger, partial(feature.keeps, feature.ledger.known(ledger)[0], fleet))
            for feature in self.features
            if feature.ledger and feature.keeps
        ]
        memories = fleet.snapshot.memories
        values += [
            (source.kept, partial(memories.get, source.name))
            for source in self.sources.polled
            # An answer that was never there replaces nothing.
            if memories.get(source.name, source.kept.empty) != source.kept.empty
        ]
        for part, value in values:
            put = partial(_put, part, ledger)
            found, failed = _each("`{}` of the ledger is not changed", [(part.name, value)], put)
            ledger = found.get(part.name, ledger)
            notes += failed
        return ledger, tuple(notes)

    def with_parts(self, fleet: Fleet) -> tuple[Fleet, tuple[str, ...]]:
        """Return the fleet whose plans have what features say of nodes once all are decided, and notes."""
        what = "what {} says of nodes is not known"
        said, notes = self._each(what, lambda feature: feature.says and feature.says(fleet))
        if not any(said.values()):
            return fleet, notes

        def whole(plan: NodePlan) -> NodePlan:
            parts = {name: of[plan.node] for name, of in said.items() if plan.node in of}
            return replace(plan, of_features={**plan.of_features, **parts}) if parts else plan

        return replace(fleet, plans=tuple(map(whole, fleet.plans))), notes

    def object_changes(
        self, objects: Mapping[str, Sequence[Any]], fleet: Fleet
    ) -> tuple[ObjectChanges, tuple[str, ...]]:
        """Return the changes of the objects that were read, and a note for each feature that failed."""
        changes, notes = self._each(
            "objects of {} for other tools are not changed",
            lambda feature: feature.objects.changes(objects, fleet) if feature.objects else None,
        )
        writes = tuple(write for change in changes.values() for write in change.writes)
        return ObjectChanges(writes, tuple(at for change in changes.values() for at in change.moments)), notes

    def labels(self, fleet: Fleet) -> tuple[LabelsOf | None, tuple[str, ...]]:
        """Return what gives the labels that features want on a node, None if no feature wants any; and notes.

        A feature that fails for a node wants none there.
        """
        what = "labels of {} are not changed"
        wanted, notes = self._each(what, lambda feature: feature.labels and feature.labels(fleet))
        if not wanted:
            return None, notes

        def labels_of(node: Node) -> dict[str, str]:
            given, _ = _each(f"node {node.name}: {what}", wanted.items(), lambda of: of(node))
            return {key: value for labels in given.values() for key, value in labels.items()}

        return labels_of, notes

    def removed(self, node: Node, prefix: str) -> NodeSigns:
        """Return the changes that remove all signs from a node."""
        return all_signs(feature.removed(node, prefix) for feature in self.features if feature.removed)

    def _each(
        self, what: str, ask: Callable[[Feature], Value | None]
    ) -> tuple[dict[str, Value], tuple[str, ...]]:
        return _each(what, ((feature.name, feature) for feature in self.features), ask)


def check_kept_parts() -> None:
    """Raise ValueError, which names both files, if two keep something under one name.

    That is in the record, among the kinds of its claims, or in the ledger.
    """
    features = [(plugins.file_of(module), module.FEATURE) for module in plugins.modules("feature")]
    names = [(file, [feature.record.name]) for file, feature in features if feature.record is not None]
    plugins.by_name("part of the record", (("reconciler/model/record.py", record.KEYS), *names), str)
    claims = [(file, feature.claims) for file, feature in features]
    plugins.by_name("kind of claims", (("reconciler/model/record.py", [*record.ClaimKind]), *claims), str)
    names = [(file, [feature.ledger.name]) for file, feature in features if feature.ledger is not None]
    for module in plugins.modules("source"):
        polled = [source.kept.name for source in module.SOURCES if isinstance(source, PolledSource)]
        names.append((plugins.file_of(module), polled))
    plugins.by_name("part of the ledger", (("reconciler/model/snapshot.py", snapshot.KEYS), *names), str)


def _all_wants(parts: Iterable[Wants]) -> Wants:
    """Return what all of these want."""
    parts = tuple(parts)
    return Wants(
        conditions=frozenset().union(*(part.conditions for part in parts)),
        annotations=frozenset().union(*(part.annotations for part in parts)),
        labels=frozenset().union(*(part.labels for part in parts)),
        agents=any(part.agents for part in parts),
        remediator=any(part.remediator for part in parts),
        server=any(part.server for part in parts),
        system_uuid=any(part.system_uuid for part in parts),
    )


def _put(part: LedgerPart[Any], ledger: Ledger, value: Callable[[], Any]) -> Ledger:
    return part.put(ledger, value())


_NO_SIGNS = NodeSigns()


def all_signs(parts: Iterable[NodeSigns]) -> NodeSigns:
    """Return all of these changes as one."""
    annotations: dict[str, str | None] = {}
    labels: dict[str, str | None] = {}
    parts = tuple(part for part in parts if part != _NO_SIGNS)
    if len(parts) <= 1:
        return parts[0] if parts else _NO_SIGNS
    for part in parts:
        annotations |= part.annotations
        labels |= part.labels
    return NodeSigns(
        annotations,
        tuple(write for part in parts for write in part.writes),
        labels,
        tuple(task for part in parts for task in part.tasks),
        tuple(hold for part in parts for hold in part.holds),
        tuple(notice for part in parts for notice in part.notices),
    )
