"""Law 16, for faults in the code: an error in one step, for one node or one part, harms only that one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.drains import DrainProgress, Phase, SlotUse
from reconciler.model.errors import LockLost
from reconciler.model.holds import INTERNAL
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.ports import Notification
from reconciler.model.record import DrainRecord
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.report.document import as_json, to_report
from reconciler.report.text import as_markdown, as_text
from reconciler.run import run_pass
from reconciler.sources.aws.source import Ec2Events
from tests.support import builders
from tests.support.builders import DRAIN_NOW, NOW, REQUEST, codes, plan_of
from tests.support.worlds import look, world_of

Z = "z"
SETTINGS = "budget: {maxUnavailable: 100%}\npublish: [nodemaintenances]\nsources: {aws: {enabled: true}}"


def _names_z(value: object) -> bool:
    """Whether an argument is node z, its name, its plan, or something seen of it."""
    names = (getattr(value, "name", None), getattr(value, "node", None), value)
    return any(one == Z or getattr(one, "name", None) == Z for one in names)


def _break(monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> list[object]:
    place = importlib.import_module(module)
    real: Callable[..., Any] = getattr(place, name)
    hits: list[object] = []

    def broken(*arguments: Any, **named: Any) -> Any:
        if any(_names_z(one) for one in arguments):
            hits.append(arguments)
            raise OverflowError("date value out of range")
        return real(*arguments, **named)

    monkeypatch.setattr(place, name, broken)
    return hits


def _pass() -> tuple[Plan, tuple[Outcome, ...]]:
    asking = [builders.node(name, annotations={REQUEST: DRAIN_NOW}) for name in ("a", "b", Z)]
    return look(world_of(asking), builders.settings(SETTINGS))


def _shape(one: NodePlan) -> object:
    return (one.node, one.starts, one.after, [hold.code for hold in one.holds], one.record, one.todo.drain)


def _others(plan: Plan) -> list[object]:
    return [_shape(one) for one in plan.nodes if one.node != Z]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("reconciler.passes.decide", "queue_key"),
        ("reconciler.passes.decide", "_has_place"),
        ("reconciler.passes.node_facts", "_in_hand"),
        ("reconciler.sources.imds.feature", "_by_id"),
        ("reconciler.starts.budget", "_seat"),
    ],
)
def test_an_error_in_a_step_over_all_nodes_holds_its_node_only(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine, _ = _pass()
    hits = _break(monkeypatch, module, name)
    plan, _ = _pass()

    assert hits
    assert codes(plan_of(plan, Z)) == {INTERNAL.code}
    assert not plan_of(plan, Z).acts
    assert _others(plan) == _others(fine)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("reconciler.passes.decide.reporting", "_silence"),
        ("reconciler.passes.decide.reporting", "_moments"),
        ("reconciler.features.publishing.node_maintenances", "_living"),
    ],
)
def test_an_error_in_what_is_shown_changes_no_plan(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine, _ = _pass()
    hits = _break(monkeypatch, module, name)
    plan, _ = _pass()

    assert hits
    assert [_shape(one) for one in plan.nodes] == [_shape(one) for one in fine.nodes]
    assert {one.node for one in plan.publications} >= {"a", "b"}


def test_an_error_in_the_scope_of_one_node_leaves_the_source_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def locate(source: Ec2Events, node: Any) -> tuple[str, str]:
        del source
        if node.name == Z:
            raise OverflowError("out of range")
        return "eu-west-1", f"i-{node.name}"

    monkeypatch.setattr(Ec2Events, "locate", locate)
    nodes = [builders.node(name) for name in ("a", Z)]
    assert Ec2Events().scopes(nodes) == {"eu-west-1": {"i-a"}}


class _Client:
    def ask(self, scopes: object, /) -> Any:
        raise OverflowError("out of range")


def test_an_error_in_the_client_of_a_source_makes_its_readings_unknown_and_is_tried_again_later() -> None:
    provider = "aws:///eu-west-1a/i-0123456789abcdef0"
    asking = replace(builders.node("a", annotations={REQUEST: DRAIN_NOW}), provider_id=provider)
    world = world_of([asking])
    outside = replace(world.outside, clients={"aws": _Client()})
    plan, _ = run_pass(outside, builders.settings(SETTINGS), world.now)

    found = plan_of(plan, "a")
    assert found.starts
    assert any("an error in this program" in text for text in found.unknowns)
    assert plan.ledger is not None
    (answer,) = plan.ledger.memories["aws"].answers
    assert answer.again > world.now


class _Notifier:
    def __init__(self, error: Exception) -> None:
        self.notified: list[str] = []
        self._error = error

    def notify(self, notification: Notification) -> bool:
        self.notified.append(notification.node)
        raise self._error


def test_an_error_in_a_notifier_ends_no_pass_but_a_lost_lock_does() -> None:
    asking = [builders.node(name, annotations={REQUEST: DRAIN_NOW}) for name in ("a", Z)]
    world = world_of(asking)
    broken = _Notifier(OverflowError("out of range"))
    run_pass(
        replace(world.outside, notifier=broken),
        builders.settings("budget: {maxUnavailable: 100%}"),
        world.now,
    )
    assert set(broken.notified) == {"a", Z}

    world = world_of(asking)
    with pytest.raises(LockLost):
        run_pass(replace(world.outside, notifier=_Notifier(LockLost("gone"))), builders.settings(), world.now)


def test_an_error_in_the_drainer_fails_its_node_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = [builders.node(name, annotations={REQUEST: DRAIN_NOW}) for name in ("a", Z)]
    world = world_of(asking)
    start = world.outside.drainer.start

    def broken(order: Any) -> None:
        if order.node == Z:
            raise OverflowError("out of range")
        start(order)

    monkeypatch.setattr(world.outside.drainer, "start", broken)
    _, outcomes = look(world, builders.settings("budget: {maxUnavailable: 100%}"))
    assert {one.node for one in outcomes if one.result is Result.FAILED} == {Z}


def test_a_node_that_cant_be_shown_is_named_in_each_form_of_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, _ = _pass()
    broken = replace(plan_of(plan, Z), events=(None,), checks=(None,))  # type: ignore[arg-type]
    plan = replace(plan, nodes=(*(one for one in plan.nodes if one.node != Z), broken))
    report = to_report(plan, rehearsed=True)
    for reported in (as_text(report), as_json(report.document), as_markdown(report)):
        assert Z in reported
        assert "an error in this program" in reported


@pytest.mark.parametrize(
    ("own", "text", "holds"),
    [
        pytest.param(None, "drain: {maxConcurrentNodes: 1}", "drainSlot", id="its slot"),
        pytest.param("zz", "", "othersFirst", id="its turn before our own node"),
    ],
)
def test_the_drain_of_a_node_with_an_error_still_counts(
    own: str | None, text: str, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = builders.record(drain=DrainRecord(NOW), events=(builders.known(ids=("A1",)),))
    nodes = [builders.held_node(held, name) for name in (Z, "zz")]
    seen = builders.snapshot(
        *nodes,
        readings={one.name: builders.reported(builders.signal(event_id="A1")) for one in nodes},
        pods={one.name: (builders.pod("web", one.name),) for one in nodes},
        drains={Z: DrainProgress(Z, f"uid-{Z}", Phase.RUNNING, slot=SlotUse(held=True))},
        own_node=own,
    )
    hits = _break(monkeypatch, "reconciler.passes.decide.one_node", "decide_node")
    plan = builders.planned(seen, builders.settings(text))

    assert hits
    assert codes(plan_of(plan, Z)) == {INTERNAL.code}
    assert codes(plan_of(plan, "zz")) == {holds}


@pytest.mark.parametrize(("spacing", "starts"), [("10m", False), ("0s", True)])
def test_a_last_start_that_cant_be_read_holds_only_what_spacing_holds_and_only_once(
    spacing: str, starts: bool
) -> None:
    policy = builders.settings(f"budget: {{maxUnavailable: 100%, spacing: {spacing}}}")
    drained = builders.held_node(
        builders.record(drain=DrainRecord(NOW)), "a", annotations={REQUEST: DRAIN_NOW}
    )
    world = world_of([drained, builders.node("b", annotations={REQUEST: DRAIN_NOW})], [builders.pod(on="a")])
    world.cluster.ledger = Ledger(unread="not a moment: 'soon'")
    plan, _ = look(world, policy)

    assert plan_of(plan, "a").todo.drain is not None
    assert plan_of(plan, "b").starts == starts
    assert ("spacingKept" in codes(plan_of(plan, "b"))) != starts
    assert any("soon" in note for note in plan.notes)

    again, _ = look(world, policy, NOW + timedelta(minutes=11))
    assert not plan_of(again, "b").holds
    assert plan_of(again, "b").starts != starts
