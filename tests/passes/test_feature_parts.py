"""What a feature may add to the case of a node: facts that it reads, an adopted cordon, a request, holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from msgspec import Struct

import reconciler.run
from reconciler import plugins
from reconciler.model.errors import ClusterError, Conflict, Forbidden, Late
from reconciler.model.machine import platform
from reconciler.model.node import Node
from reconciler.model.outcome import ActionKind, Outcome, Place, Result
from reconciler.model.plan import Hold, NodePart, Notice, Plan
from reconciler.model.ports import Outside
from reconciler.model.record import Claim, Cordon, Record, RecordPart, State, to_annotation
from reconciler.model.snapshot import Ledger, LedgerPart
from reconciler.model.tasks import Clients
from reconciler.model.values import code_of, replace
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.node_facts import Decider, NodeFacts, PassContext
from reconciler.passes.parts import check_kept_parts
from reconciler.passes.plugin import Deciding, Feature, Fleet, Observed, Wants
from reconciler.profiles.situation import Situation
from reconciler.run import PARTS, run_pass
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.simulation.building import name, world
from tests.support import builders
from tests.support.builders import RECORD, REQUEST
from tests.support.worlds import look, world_of

SETTINGS = parse_settings("mode: Enforce\nuncordon: {settle: 0s}\n", "test.yaml")
WANTS = Wants(labels=frozenset({"crane"}))
MARK = "node-maintenance.dev/crane"


class Lift(Struct, frozen=True):
    """Lift the node."""

    action: ClassVar[ActionKind] = ActionKind("lift", "lift it")

    node: str

    @property
    def what(self) -> tuple[str, ...]:
        return ("crane", self.node)

    def perform(self, clients: Clients) -> None:
        platform("crane", clients).perform(self)


class Reserve(Lift, frozen=True):
    """Reserve the crane before the node's patch says that it is lifted."""

    action: ClassVar[ActionKind] = ActionKind("reserve", "reserve the crane", Place.BEFORE)

    def perform(self, clients: Clients) -> None:
        crane = platform("crane", clients)
        assert isinstance(crane, Crane)
        crane.reserve(self)


class Crane:
    """Takes requests, and has nothing to say as a source."""

    def __init__(self, there: World) -> None:
        self.there = there
        self.lifted: list[str] = []
        self.reserved: list[str] = []
        self.error: ClusterError | None = None

    def ask(self, scopes: Any) -> tuple[Any, ...]:
        return ()

    def perform(self, request: Lift, /) -> None:
        assert self.there.cluster.nodes[request.node].annotations[MARK] == "heavy"
        self.lifted.append(request.node)

    def reserve(self, request: Reserve) -> None:
        assert MARK not in self.there.cluster.nodes[request.node].annotations
        if self.error is not None:
            raise self.error
        self.reserved.append(request.node)


def read(outside: Outside, observed: Observed) -> Mapping[str, Any]:
    assert "crane" in outside.clients
    return {node.name: "heavy" for node in observed.nodes if node.name == name(0)}


def signs(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
    weight = context.snapshot.for_settings.of_features["crane"].get(node.name)
    if weight is None or MARK in node.read.annotations:
        return NodeSigns()
    return NodeSigns(
        {MARK: weight},
        tasks=(Lift(node.name),),
        holds=(Hold(node.name, "crane", "it is lifted"),),
        notices=(Notice("Lifted", "it is lifted"),),
    )


def adopts(node: Node, settings: Settings) -> str:
    return "the crane" if "crane" in node.labels else ""


def bears(node: Node, prefix: str) -> bool:
    return True


def run(
    there: World, monkeypatch: pytest.MonkeyPatch, **parts: Any
) -> tuple[Crane, Plan, tuple[Outcome, ...]]:
    """Run a pass with a feature of these parts."""
    crane = Crane(there)
    there.clients["crane"] = crane
    feature = Feature("crane", bears_signs=bears, **parts)
    monkeypatch.setattr(reconciler.run, "PARTS", replace(PARTS, features=(*PARTS.features, feature)))
    return (crane, *run_pass(there.outside, SETTINGS, there.now))


def test_a_feature_reads_nodes_and_asks_the_platform_once_its_patch_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = world(2)

    crane, plan, outcomes = run(there, monkeypatch, observe=read, signs=signs)

    assert crane.lifted == [name(0)]
    (node,) = (one for one in plan.nodes if one.node == name(0))
    assert [hold.code for hold in node.holds] == ["crane"]
    assert [notice.reason for notice in node.todo.notices] == ["Lifted"]
    assert Outcome(name(0), "lift", Result.DONE) in outcomes


def test_a_request_is_not_sent_where_the_patch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    there = world(2)
    monkeypatch.setattr(type(there.outside.writer), "patch_node", lambda *_: 1 / 0)

    crane, _, _ = run(there, monkeypatch, observe=read, signs=signs)

    assert crane.lifted == []


@pytest.mark.parametrize(
    ("error", "result"),
    [(None, Result.DONE), (Conflict("taken"), Result.LATER), (Forbidden("no"), Result.FAILED)],
)
def test_what_a_feature_does_before_the_patch_of_a_node_decides_about_the_patch(
    error: ClusterError | None, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = world(2)
    crane = Crane(there)
    crane.error = error
    there.clients["crane"] = crane

    def reserving(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
        given = signs(decision, node, context)
        return replace(given, tasks=(Reserve(node.name), *given.tasks)) if given.tasks else given

    feature = Feature("crane", bears_signs=bears, observe=read, signs=reserving)
    monkeypatch.setattr(reconciler.run, "PARTS", replace(PARTS, features=(*PARTS.features, feature)))
    _, outcomes = run_pass(there.outside, SETTINGS, there.now)

    done = [name(0)] if error is None else []
    assert (crane.reserved, crane.lifted) == (done, done)
    assert [one.result for one in outcomes if one.action == "reserve"] == [result]
    assert (MARK in there.cluster.nodes[name(0)].annotations) is (error is None)


def test_a_request_waits_where_the_process_has_no_client_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there = world(2)

    def lifting(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
        return NodeSigns({MARK: "heavy"}, tasks=(Lift(node.name),))

    feature = Feature("crane", bears_signs=bears, signs=lifting)
    monkeypatch.setattr(reconciler.run, "PARTS", replace(PARTS, features=(*PARTS.features, feature)))
    _, outcomes = run_pass(there.outside, SETTINGS, there.now)

    lifts = {(one.result, one.detail) for one in outcomes if one.action == "lift"}
    assert lifts == {(Result.LATER, "this process does not talk to the cloud")}


@pytest.mark.parametrize(
    ("asked", "unknown"),
    [
        ("observe", "what crane needs of nodes can't be read"),
        ("machines", "machines are not known to crane"),
        ("says", "what crane says of nodes is not known"),
        ("labels", "labels of crane are not changed"),
    ],
)
def test_a_feature_that_fails_is_a_note_and_harms_no_node_and_no_other_feature(
    asked: str, unknown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = world_of([builders.node(name(0), annotations={REQUEST: builders.DRAIN_NOW})])
    broken: Any = {asked: lambda *_: 1 / 0}
    hoist = Feature("hoist", says=lambda _: {name(0): Swings()})
    features = (*PARTS.features, Feature("crane", bears_signs=bears, **broken), hoist)
    monkeypatch.setattr(reconciler.run, "PARTS", replace(PARTS, features=features))

    plan, _ = run_pass(there.outside, SETTINGS, there.now)

    assert f"internal error: {unknown}: ZeroDivisionError: division by zero" in plan.notes
    assert all(hold.code != "internal" for node in plan.nodes for hold in node.holds)
    assert [node.of_features.get("hoist") for node in plan.nodes if node.node == name(0)] == [Swings()]


def test_a_feature_whose_answer_comes_later_is_a_note_and_no_error_of_the_program(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    there = world(2)

    def later(*_: object) -> dict[str, object]:
        raise Late("no answer yet")

    _, plan, _ = run(there, monkeypatch, observe=later)

    assert "what crane needs of nodes can't be read: no answer yet" in plan.notes
    assert caplog.records == []


def test_the_cordon_of_a_tool_that_a_feature_knows_is_adopted_and_taken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = world(2)
    there.cluster.label(name(0), "crane", "yes")
    for node in (name(0), name(1)):
        there.cluster.put_node(replace(there.cluster.nodes[node], unschedulable=True))

    for _ in range(3):
        run(there, monkeypatch, adopts=adopts, reads=lambda _: WANTS)
        there.advance(timedelta(minutes=1))

    assert not there.cluster.nodes[name(0)].unschedulable
    assert there.cluster.nodes[name(1)].unschedulable


@pytest.mark.parametrize(
    ("features", "named"), [((), True), ((Feature("crane", record=RecordPart("crane", int, 0)),), False)]
)
def test_a_part_of_the_record_that_no_feature_knows_stays_and_is_named_once(
    features: tuple[Feature, ...], named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler.run, "PARTS", replace(PARTS, features=(*PARTS.features, *features)))
    there = world_of([builders.node(each, annotations={REQUEST: builders.DRAIN_NOW}) for each in "abcde"])
    settings = builders.settings("budget: {maxUnavailable: 5}")
    look(there, settings)
    for node in there.cluster.nodes.values():
        document = json.loads(node.annotations[RECORD])
        document["profiles"]["default"]["crane"] = 3
        there.cluster.annotate(node.name, RECORD, json.dumps(document))
    plan, _ = look(there, settings)
    later, _ = look(there, settings)
    kept = [
        json.loads(node.annotations[RECORD])["profiles"]["default"]["crane"]
        for node in there.cluster.nodes.values()
    ]

    assert kept == [3] * 5
    note = (
        "'crane' in the records of a, b, c and 2 more is of a feature that this program does not have; "
        "it stays as it is until their cases end"
    )
    for notes in (plan.notes, later.notes):
        assert [each for each in notes if "crane" in each] == [note] * named


@pytest.mark.parametrize(
    ("kind", "part", "said"),
    [
        ("record", "events", "reconciler/model/record.py has another part of the record events"),
        ("record", "crane", "toys/crane.py has another part of the record crane"),
        ("ledger", "undone", "reconciler/model/snapshot.py has another part of the ledger undone"),
        ("ledger", "crane", "toys/crane.py has another part of the ledger crane"),
    ],
)
def test_a_part_that_exists_is_refused_with_both_files(
    kind: str, part: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def toy(file: str, kept: str) -> SimpleNamespace:
        in_record, in_ledger = (
            Feature(file, record=RecordPart(kept, int, 0)),
            Feature(file, ledger=_lifts(kept)),
        )
        feature = in_record if kind == "record" else in_ledger
        return SimpleNamespace(__name__=f"toys.{file}", FEATURE=feature)

    toys = [toy("crane", "crane"), toy("hoist", part)]
    monkeypatch.setattr(plugins, "modules", lambda stage: iter(toys if stage == "feature" else []))

    with pytest.raises(ValueError, match=f"^toys/hoist.py: {said}$"):
        check_kept_parts()


def test_a_part_of_the_ledger_that_exists_is_refused_for_a_source_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    polled = PARTS.sources.polled[0]
    toys = {
        "feature": [
            SimpleNamespace(__name__="toys.crane", FEATURE=Feature("crane", ledger=_lifts(polled.name)))
        ],
        "source": [SimpleNamespace(__name__="toys.cloud", SOURCES=(polled,))],
    }
    monkeypatch.setattr(plugins, "modules", lambda stage: iter(toys[stage]))

    with pytest.raises(ValueError, match=r"^toys/cloud\.py: toys/crane\.py has another part of the ledger"):
        check_kept_parts()


def _lifts(key: str, most: int = 9) -> LedgerPart[int]:
    return LedgerPart(key, code_of(int), 0, "lifts are counted again", most=most)


def _keeping(
    monkeypatch: pytest.MonkeyPatch, there: World, keeps: Callable[[int, Fleet], int], most: int = 9
) -> Plan:
    """Make a pass in which a feature keeps a number in the ledger."""
    feature = Feature("crane", ledger=_lifts("crane", most), keeps=keeps)
    monkeypatch.setattr(reconciler.run, "PARTS", replace(PARTS, features=(*PARTS.features, feature)))
    plan, _ = look(there, SETTINGS)
    return plan


def test_what_a_feature_keeps_in_the_ledger_is_there_in_the_next_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = world(1)
    for _ in range(3):
        _keeping(monkeypatch, there, lambda before, _: before + 1)
        there.restart()

    assert there.cluster.ledger.parts == {"crane": "3"}


def test_what_a_feature_keeps_harms_that_feature_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(before: int, fleet: Fleet) -> int:
        raise ZeroDivisionError

    there = world(1)
    there.cluster.ledger = Ledger(parts={"crane": "3", "hoist": "x"})

    for keeps, most in ((broken, 9), (lambda before, _: 10_000, 3)):
        plan = _keeping(monkeypatch, there, keeps, most)
        assert len([note for note in plan.notes if "`crane` of the ledger" in note]) == 1
        assert there.cluster.ledger.parts == {"crane": "3", "hoist": "x"}


def test_a_part_of_the_ledger_that_no_plugin_knows_stays_and_is_named_once() -> None:
    there = world_of([builders.node("a", annotations={REQUEST: builders.DRAIN_NOW})])
    known = {feature.ledger.name: "[]" for feature in PARTS.features if feature.ledger is not None}
    there.cluster.ledger = Ledger(parts={"hoist": "x", "crane": "3", **known})

    plan, _ = look(there, SETTINGS)

    note = (
        "what the ledger has under 'crane', 'hoist' is of a plugin that this program does not have; "
        "it stays as it is"
    )
    assert [each for each in plan.notes if "crane" in each] == [note]
    assert there.cluster.ledger.parts.items() >= {"hoist": "x", "crane": "3"}.items()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("person", "toys/hoist.py: reconciler/model/record.py has another kind of claims person"),
        ("crane", "toys/hoist.py: toys/crane.py has another kind of claims crane"),
    ],
)
def test_a_kind_of_claims_that_exists_is_refused_with_both_files(
    kind: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys = [
        SimpleNamespace(__name__=f"toys.{each}", FEATURE=Feature(each, claims=(claims,)))
        for each, claims in (("crane", "crane"), ("hoist", kind))
    ]
    monkeypatch.setattr(plugins, "modules", lambda stage: iter(toys if stage == "feature" else []))

    with pytest.raises(ValueError, match=said):
        check_kept_parts()


def test_the_claim_of_a_feature_that_is_gone_stays_and_a_note_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = world(2)
    node = there.cluster.nodes[name(0)]
    claimed = Record(node.uid).cordoned(Cordon.OURS, Claim("crane", "heavy"), there.now)
    there.cluster.cordon(name(0))
    there.cluster.annotate(name(0), RECORD, to_annotation(claimed))

    _, plan, _ = run(there, monkeypatch)
    _, known, _ = run(there, monkeypatch, claims=("crane",))

    assert there.cluster.nodes[name(0)].unschedulable
    assert (name(0), "in maintenance for heavy") in plan.budget.holders
    note = (
        f"the claim crane in the records of {name(0)} is of a feature that this program does not have; it "
        "stays as it is until a person releases the nodes"
    )
    assert note in plan.notes
    assert note not in known.notes


class Swings(NodePart, frozen=True):
    """What the crane says of a node: whether that is a row, the states of its profile, and when it ends."""

    row: bool = False
    moves: tuple[State, State] = (State.OPERATIONAL, State.OPERATIONAL)
    ends: datetime | None = None

    @property
    def news(self) -> bool:
        return self.row

    @property
    def states(self) -> Mapping[str, tuple[State, State]]:
        return {"heavy": self.moves}

    def moments(self, now: datetime) -> Iterator[datetime]:
        if self.ends is not None and self.ends > now:
            yield self.ends


@pytest.mark.parametrize(
    ("says", "reported", "changes"),
    [
        (Swings(), False, None),
        (Swings(row=True), True, None),
        (Swings(row=True, ends=builders.NOW + timedelta(minutes=7)), True, timedelta(minutes=7)),
        (Swings(moves=(State.REQUIRED, State.REQUIRED)), True, None),
        (Swings(moves=(State.OPERATIONAL, State.REQUIRED)), True, timedelta(seconds=1)),
        (Swings(moves=(State.REQUIRED, State.OPERATIONAL), row=True), True, timedelta(seconds=1)),
    ],
)
def test_what_a_feature_says_of_a_node_is_in_the_plan_with_what_follows_from_it(
    says: Swings, reported: bool, changes: timedelta | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Swinging(Decider):
        def decide(
            self, decision: CaseDecision, node: NodeFacts, situation: Situation, context: PassContext
        ) -> tuple[NodeFacts, Situation]:
            decision.of_features = {"crane": says}
            return node, situation

    there = world_of([builders.node("a")])

    _, plan, _ = run(there, monkeypatch, decide=Deciding(lambda *_: Swinging()))

    rows = [(node.node, node.before, node.after, node.of_features["crane"]) for node in plan.nodes]
    assert rows == ([("a", *says.moves, says)] if reported else [])
    assert plan.next_change == (there.now + changes if changes is not None else None)


@pytest.mark.parametrize("on", [True, False])
def test_a_source_offers_something_while_it_is_on(on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [source for source in PARTS.sources.all if source.offers]
    for source in sources:
        monkeypatch.setattr(type(source), "enabled", lambda _source, _settings: on)

    of_sources = {offer.name for source in sources for offer in source.offers}
    others = {offer.name for feature in PARTS.features for offer in feature.offers}
    assert {offer.name for offer in PARTS.offers_of(SETTINGS)} == others | (of_sources if on else set())
