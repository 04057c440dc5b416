"""A source is one object and a line of the registry: passes, the ledger and the report follow from it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any, Protocol

import pytest
from msgspec import Struct

import reconciler.run
from jobs.runtime.outside import SourceClients, factory
from reconciler.model.case_outcome import CaseResult
from reconciler.model.event import Answer, Kind, Reading, Signal, Status
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import Node
from reconciler.model.polling import Listing
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.passes.parts import Parts, Sources
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.passes.polled import PolledSource
from reconciler.report.document import Report, to_report
from reconciler.report.explain import who_reads
from reconciler.report.text import as_text
from reconciler.report.values import Document
from reconciler.run import PARTS, run_pass
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.simulation.building import name, world

SETTINGS = parse_settings("mode: Enforce\nuncordon: {settle: 0s}\n", "test.yaml")
EVERY = timedelta(minutes=5)
LABEL = "tickets.example.com/reboot"
ANNOTATION = "tickets.example.com/number"


class Tickets(Source):
    """A ticket on a node: a label with an annotation beside it."""

    name = "tickets"
    reports_start = True
    who = "whoever wrote the ticket of {node}"

    def enabled(self, settings: Settings) -> bool:
        return True

    def wants(self, settings: Settings) -> Wants:
        return Wants(labels=frozenset({LABEL}), annotations=frozenset({ANNOTATION}))

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        if LABEL not in node.labels:
            return (Reading(self.name, Answer.NO_EVENT),)
        number = node.annotations.get(ANNOTATION, "")
        signal = Signal(self.name, Kind.REBOOT, Status.SCHEDULED, id=number)
        return (Reading(self.name, Answer.EVENT, (signal,)),)


@dataclass(frozen=True, slots=True)
class Section:
    """The settings of the rack plan."""

    enabled: bool = True
    every: timedelta = EVERY


class Outage(Struct, frozen=True):
    """A rack loses its power at this moment."""

    at: datetime


class RackPlan(PolledSource[str, Outage]):
    """A plan of power outages: one list for each zone, with the names of nodes."""

    name = "rackPlan"
    reports_start = True
    who = "whoever plans outages"
    client = "reconciler.sources.toy"
    fact = Outage

    def section(self, settings: Settings) -> Section:
        return Section()

    def locate(self, node: Node) -> tuple[str, str] | None:
        return node.zone or "no zone", node.name

    def signals(self, name: str, facts: Sequence[Outage], now: datetime) -> tuple[Signal, ...]:
        return tuple(Signal(self.name, Kind.REBOOT, Status.SCHEDULED, one.at) for one in facts)

    def moments(self, fact: Outage) -> Iterable[datetime]:
        yield fact.at


@dataclass(slots=True)
class PlanService:
    """What the rack plan asks."""

    there: World
    outages: dict[str, datetime] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    problem: str = ""

    def ask(self, scopes: Sequence[str], /) -> tuple[Listing[str, Outage], ...]:
        self.asked += scopes
        found = tuple((node, Outage(at)) for node, at in self.outages.items())
        seen = frozenset(self.there.cluster.nodes)
        return tuple(
            Listing(scope, problem=self.problem) if self.problem else Listing(scope, found, seen)
            for scope in scopes
        )


class Register(Protocol):
    """Adds a source to the list, and for a polled source the module of its client."""

    def __call__(self, source: Source, client: PlanService | None = None) -> None: ...


def use(monkeypatch: pytest.MonkeyPatch, *sources: Source) -> None:
    """Let passes have these sources."""
    monkeypatch.setattr(reconciler.run, "PARTS", replace(PARTS, sources=Sources(*sources)))


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Add a source to the list for one test."""

    def add(source: Source, client: PlanService | None = None) -> None:
        known = reconciler.run.PARTS.sources.all
        use(monkeypatch, *known, source)
        if client is not None:
            module = ModuleType(RackPlan.client)
            module.for_source = lambda settings, guard: client  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, module.__name__, module)

    return add


def run(there: World) -> Report:
    plan, outcomes = run_pass(there.outside, SETTINGS, there.now)
    return to_report(plan, outcomes, rehearsed=False)


def node_of(report: Report, node: str) -> Document:
    """The node's part of the report; an empty one where the report has nothing to say of it."""
    found: Document = next((one for one in report.document["nodes"] if one["name"] == node), {})
    return found


def test_a_simple_source_takes_one_line_of_the_registry_to_drain_a_node(register: Register) -> None:
    there = world(3)
    there.cluster.label(name(0), LABEL, "wanted")
    there.cluster.annotate(name(0), ANNOTATION, "T-17")
    assert node_of(run(there), name(0)) == {}

    register(Tickets())
    report = run(there)

    node = node_of(report, name(0))
    (event,) = node["events"]
    assert (event["sources"], event["ids"], event["kind"]) == (["tickets"], ["T-17"], "Reboot")
    assert there.cluster.nodes[name(0)].unschedulable
    assert "tickets" in as_text(report)
    assert not there.cluster.nodes[name(1)].unschedulable


def test_a_simple_source_that_falls_silent_ends_its_event(register: Register) -> None:
    there = world(3)
    register(Tickets())
    there.cluster.label(name(0), LABEL, "wanted")
    run(there)
    there.cluster.label(name(0), LABEL, None)
    for _ in range(4):
        there.advance(timedelta(minutes=1))
        run(there)

    assert not there.cluster.nodes[name(0)].unschedulable


def test_an_event_of_a_removed_source_waits_for_no_source(
    monkeypatch: pytest.MonkeyPatch, register: Register
) -> None:
    there = world(3)
    register(Tickets())
    there.cluster.label(name(0), LABEL, "wanted")
    run(there)
    assert there.cluster.nodes[name(0)].unschedulable

    use(monkeypatch, *PARTS.sources.all)
    for _ in range(4):
        there.advance(timedelta(minutes=1))
        run(there)

    assert not there.cluster.nodes[name(0)].unschedulable


class Orders(Tickets):
    """Tickets that do not say when the work begins: whoever wrote one waits for the empty node."""

    reports_start = False


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        pytest.param(Orders(), CaseResult.DRAINED, id="the maintenance begins once the node is drained"),
        pytest.param(Tickets(), CaseResult.CANCELLED, id="the maintenance never started"),
    ],
)
@pytest.mark.parametrize("stays", [True, False], ids=["the source stays", "the source is removed"])
def test_a_source_says_whether_it_reports_the_start(
    monkeypatch: pytest.MonkeyPatch, register: Register, source: Source, outcome: CaseResult, *, stays: bool
) -> None:
    there = world(3)
    register(source)
    there.cluster.label(name(0), LABEL, "wanted")
    results = []
    for step in range(12):
        if step == 6:
            there.cluster.label(name(0), LABEL, None)
            if not stays:
                use(monkeypatch, *PARTS.sources.all)
        plan, _ = run_pass(there.outside, SETTINGS, there.now)
        results += [node.outcome for node in plan.nodes if node.node == name(0) and node.ended is not None]
        there.advance(timedelta(minutes=1))

    (last,) = results
    assert last is not None
    assert (last.result, last.drained is not None) == (outcome, True)


def test_a_polled_source_is_asked_remembered_and_reported_through_the_registry_alone(
    register: Register,
) -> None:
    there = world(3)
    service = PlanService(there, {name(0): there.now + timedelta(minutes=30)})
    register(RackPlan(), service)
    there.clients.update(SourceClients(reconciler.run.PARTS.sources.polled, guard=lambda: None).of(SETTINGS))

    report = run(there)

    (event,) = node_of(report, name(0))["events"]
    assert event["sources"] == ["rackPlan"]
    assert "rackPlan" in as_text(report)
    assert there.cluster.nodes[name(0)].unschedulable
    zones = sorted({node.zone or "no zone" for node in there.cluster.nodes.values()})
    assert service.asked == zones

    # Not before its time, and by the next process as well: the ledger has it.
    there.advance(timedelta(minutes=4))
    there.restart()
    run(there)
    assert service.asked == zones
    there.advance(timedelta(minutes=1))
    run(there)
    assert service.asked == zones * 2


def test_the_plan_changes_when_a_polled_source_is_asked_again(register: Register) -> None:
    there = world(3)
    register(RackPlan())
    there.clients["rackPlan"] = PlanService(there)
    plan, _ = run_pass(there.outside, SETTINGS, there.now)

    assert plan.next_change is not None
    assert plan.next_change <= there.now + EVERY


@pytest.mark.parametrize("lost", ["refused", "nobody asks"])
def test_what_a_polled_source_can_not_be_asked_is_unknown_and_holds_the_uncordon(
    register: Register, lost: str
) -> None:
    there = world(3)
    register(RackPlan())
    service = PlanService(there, {name(0): there.now + timedelta(minutes=30)})
    there.clients["rackPlan"] = service
    run(there)
    assert there.cluster.nodes[name(0)].unschedulable

    service.outages.clear()
    if lost == "refused":
        service.problem = "the service is away"
    else:
        del there.clients["rackPlan"]
    there.advance(EVERY)
    report = run(there)

    assert there.cluster.nodes[name(0)].unschedulable
    assert any(text.startswith("rackPlan: ") for text in node_of(report, name(0))["unknown"])


def test_every_polled_source_has_a_client() -> None:
    for source in PARTS.sources.polled:
        client = factory(source)(parse_settings("", "test.yaml"), None)
        assert callable(client.ask)


class Asked(dict[str, str]):
    """Labels or annotations that note which keys were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.of: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.of.add(key)
        return default

    def __contains__(self, key: object) -> bool:
        self.of.add(str(key))
        return False


@pytest.mark.parametrize("source", PARTS.sources.all, ids=lambda source: source.name)
def test_every_source_wants_the_labels_and_annotations_that_it_reads(source: Source) -> None:
    labels, annotations = Asked(), Asked()
    there = world(1)
    node = replace(there.cluster.nodes[name(0)], labels=labels, annotations=annotations)

    source.read(node, SourceContext(Settings(), there.now))

    beside = (each for each in PARTS.sources.all if type(each).__module__ == type(source).__module__)
    kept = wanted(Settings(), Parts(Sources(*beside)))
    unread = {key for key in labels.of if not kept.keeps_label(key)}
    unread |= {key for key in annotations.of if not key.startswith(f"{DEFAULT_PREFIX}/")} - kept.annotations
    assert not unread, f"`wants` of {source.name} lacks {unread}, so no pass reads it"


def test_every_source_says_who_can_make_it_readable_again() -> None:
    for source in PARTS.sources.all:
        for reading in source.reading_names(Settings()):
            assert who_reads(reading, "a") == source.who.format(node="a")


def test_only_what_reports_planned_maintenance_is_a_source_of_its_notice() -> None:
    conditions = {f"condition:{kind}Scheduled" for kind in ("VMEvent", "Reboot", "Redeploy")}

    assert PARTS.sources.notice_names(Settings()) == {"imds", *conditions}
    off = parse_settings("sources: {imds: {enabled: false}}", "f")
    assert PARTS.sources.notice_names(off) == conditions
