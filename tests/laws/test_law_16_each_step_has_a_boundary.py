"""Law 16, for faults in the code: an error in one step, for one node or one part, harms only that one."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from reconciler.model.drains import DrainProgress, Phase, SlotUse
from reconciler.model.errors import LockLost
from reconciler.model.holds import INTERNAL
from reconciler.model.outcome import Result
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.ports import Notification
from reconciler.model.record import DrainRecord
from reconciler.model.snapshot import Ledger, Snapshot
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.passes.decide import decide
from reconciler.report.document import as_json, to_report
from reconciler.report.text import as_markdown, as_text
from reconciler.run import PARTS, run_pass
from tests.laws.breaking import Break
from tests.support import builders
from tests.support.builders import DRAIN_NOW, NOW, REQUEST, codes, plan_of
from tests.support.worlds import look, world_of

Z = "z"
PROVIDER = "aws:///eu-west-1a/i-0123456789abcdef0"
SETTINGS = "budget: {maxUnavailable: 100%}\npublish: [nodemaintenances]\nsources: {aws: {enabled: true}}"


def _asking() -> Snapshot:
    nodes = [builders.node(name) for name in ("a", "b", Z)]
    readings = {node.name: builders.reported(builders.signal(event_id=node.name)) for node in nodes}
    return builders.snapshot(*nodes, readings=readings)


def _draining() -> Snapshot:
    record = builders.record(drain=DrainRecord(NOW), events=(builders.known(ids=("A1",)),))
    nodes = [builders.held_node(record, name) for name in ("a", "b", Z)]
    return builders.snapshot(
        *nodes,
        readings={node.name: builders.reported(builders.signal(event_id="A1")) for node in nodes},
        pods={node.name: (builders.pod("web", node.name),) for node in nodes},
    )


def _decided(snapshot: Snapshot, breaking: Break | None = None, what: str = "") -> Plan:
    """Assess and decide; a read breaks of what there is of node z: the node, its events or its pods."""
    assessment = assess(snapshot, NOW)
    if breaking is not None and what == "node":
        nodes = (breaking.broken(node) if node.name == Z else node for node in snapshot.nodes)
        snapshot = replace(snapshot, nodes=tuple(nodes))
    elif breaking is not None and what == "pods":
        broken = tuple(map(breaking.broken, snapshot.pods[Z]))
        snapshot = replace(snapshot, pods={**snapshot.pods, Z: broken})
    elif breaking is not None:
        events = tuple(map(breaking.broken, assessment.of(Z).events))
        nodes_assessed = {**assessment.nodes, Z: replace(assessment.of(Z), events=events)}
        assessment = replace(assessment, nodes=nodes_assessed)
    return decide(snapshot, assessment, builders.settings(SETTINGS), NOW, PARTS)


def _shape(plan: NodePlan) -> object:
    codes_of_holds = [hold.code for hold in plan.holds]
    return (plan.node, plan.starts, plan.after, codes_of_holds, plan.record, plan.todo.drain)


def _others(plan: Plan) -> list[object]:
    return [_shape(each) for each in plan.nodes if each.node != Z]


@pytest.mark.parametrize(
    ("snapshot", "what"),
    [
        pytest.param(_asking(), "node", id="a node with an event"),
        pytest.param(_asking(), "events", id="its event"),
        pytest.param(_draining(), "node", id="a node that drains"),
        pytest.param(_draining(), "events", id="the event of one that drains"),
        pytest.param(_draining(), "pods", id="its pod"),
    ],
)
def test_whatever_read_breaks_holds_its_node_only_or_changes_no_plan(snapshot: Snapshot, what: str) -> None:
    fine = _decided(snapshot)
    held = 0
    for number in count(1):
        breaking = Break(number)
        plan = _decided(snapshot, breaking, what)
        if not breaking.place:
            break
        assert _others(plan) == _others(fine), breaking.place
        broken = plan_of(plan, Z)
        if INTERNAL.code in codes(broken):
            held += 1
            assert not broken.acts, breaking.place
        else:
            # What is only shown of a node is left out, and its plan stays.
            usual = plan_of(fine, Z)
            assert (codes(broken), broken.after) == (codes(usual), usual.after), breaking.place

    assert held > 5


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


def test_a_node_that_cant_be_shown_is_named_in_each_form_of_the_report() -> None:
    plan = _decided(_asking())
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
def test_the_drain_of_a_node_with_an_error_still_counts(own: str | None, text: str, holds: str) -> None:
    held = builders.record(drain=DrainRecord(NOW), events=(builders.known(ids=("A1",)),))
    nodes = [builders.held_node(held, name) for name in (Z, "zz")]
    snapshot = builders.snapshot(
        *nodes,
        readings={one.name: builders.reported(builders.signal(event_id="A1")) for one in nodes},
        pods={one.name: (builders.pod("web", one.name),) for one in nodes},
        drains={Z: DrainProgress(Z, f"uid-{Z}", Phase.RUNNING, slot=SlotUse(held=True))},
        own_node=own,
    )
    # So late that the node has its turn by its event: one that breaks at once comes last.
    pods = {**snapshot.pods, Z: tuple(map(Break(12).broken, snapshot.pods[Z]))}
    plan = builders.planned(replace(snapshot, pods=pods), builders.settings(text))

    assert [one.node for one in plan.nodes] == [Z, "zz"]
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
