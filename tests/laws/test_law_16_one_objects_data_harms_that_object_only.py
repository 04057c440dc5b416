"""Law 16: one object's data harms that object only: every other node gets the plan it would have had."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.errors import ClusterError, Rejected, TooManyRequests, Unreachable
from reconciler.model.event import Kind, Signal, Status
from reconciler.model.holds import INTERNAL, NAMESPACES_READABLE, PODS_READABLE
from reconciler.model.node import ZONE_LABEL, Condition, Node
from reconciler.model.outcome import Result
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import DrainRecord, Record, from_annotation
from reconciler.model.snapshot import Problems, Snapshot
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.passes.decide import decide
from reconciler.passes.preview import preview
from reconciler.report.document import as_json, to_report
from reconciler.report.text import as_markdown, as_text
from reconciler.run import PARTS
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.laws.histories import MAIN
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import ACKNOWLEDGE, IMDS, NOW, PREFIX, RECORD, REQUEST, STATE, codes, plan_of
from tests.support.searching import examples
from tests.support.worlds import look, world_of

Z = "z"
FAR = datetime.max.replace(tzinfo=UTC)
DIGITS = "9" * 5000
HALF = "\ud800"
MOMENTS = (FAR, datetime.min.replace(tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC), NOW, None)
TEXTS = (
    "",
    HALF,
    "x" * 100_000,
    "\x1b[2J\n\r\0",
    DIGITS,
    f"Reboot Scheduled: Mon, 01 Jan 9999 00:00:00 GMT. DurationInSeconds: {DIGITS}. EventId: {'A' * 5000}",
    f"Reboot Started. DurationInSeconds: {10**17}.",
)


def _record(**change: object) -> str:
    held = json.loads(builders.held_node(builders.record(), Z).annotations[RECORD])
    held["profiles"]["default"] |= change
    return json.dumps(held)


DOCUMENTS = (
    *TEXTS,
    builders.published(*[{"EventId": f"E{n}", "EventType": "Reboot"} for n in range(2000)], vm=Z),
    builders.published(
        {"EventId": "A", "EventType": "Reboot", "NotBefore": "9999-12-31T23:59:59-14:00"}, vm=Z
    ),
    builders.published({"EventId": "A"}, vm=Z).replace('"A"', f'"\\ud800", "DurationInSeconds": {DIGITS}'),
    _record(since="9999-01-01T00:00:00Z"),
    _record(quietSince="9999-12-31T23:59:59Z"),
    _record(asked=[{"offer": "replace", "last": "2026-11-21T11:00:00Z", "attempts": 10**12}]),
    _record(asked=[{"offer": "surge", "last": "2026-11-21T11:00:00Z", "own": HALF}]),
    _record().replace("default", "\\ud800"),
    builders.held_node(builders.record(), Z, claimed_by="HALF")
    .annotations[RECORD]
    .replace("HALF", "\\ud800"),
    f'{{"kind":"Reboot","duration":"{"9" * 8}d"}}',
    f'{{"kind":"Freeze","id":"\\ud800","reason":{DIGITS}}}',
)


@st.composite
def hostile_changes(draw: st.DrawFn) -> dict[str, Any]:
    """What somebody with the rights of one kubelet may write on its own node."""
    conditions = tuple(
        Condition(
            draw(st.sampled_from(("Ready", MAIN, "RebootScheduled", "FreezeScheduled"))),
            draw(st.sampled_from(("True", "False", "Unknown", HALF))),
            message=draw(st.sampled_from(TEXTS)),
            heartbeat=draw(st.sampled_from(MOMENTS)),
            transition=draw(st.sampled_from(MOMENTS)),
        )
        for _ in range(draw(st.integers(0, 4)))
    )
    keys = st.sampled_from((RECORD, IMDS, REQUEST, ACKNOWLEDGE, f"{PREFIX}/{HALF}"))
    values = st.sampled_from(DOCUMENTS) | strategies.garbage
    return {
        "conditions": conditions,
        "annotations": draw(st.dictionaries(keys, values, max_size=3)),
        "labels": draw(
            st.dictionaries(st.sampled_from((STATE, ZONE_LABEL, "agentpool")), st.text(), max_size=2)
        ),
        "provider_id": draw(
            st.sampled_from(("", "azure://", "aws:///x/i-0", "azure://" + "/" * 10_000, *TEXTS))
        ),
        "boot_id": draw(st.sampled_from(TEXTS)),
    }


def _others(plan: Plan) -> list[NodePlan]:
    return [one for one in plan.nodes if one.node != Z]


def _without_places(one: NodePlan) -> object:
    # How a hold of the budget names who has a place is about the cluster, not about this node.
    write = one.todo.write is not None
    drain = one.todo.drain is not None
    return (
        one.node,
        one.before,
        one.after,
        one.events,
        one.transitions,
        [hold.code for hold in one.holds],
        one.unknowns,
        one.record,
        write,
        drain,
    )


def _readable(plan: Plan, rehearsed: bool = False) -> None:
    report = to_report(plan, (), rehearsed=rehearsed)
    for reported in (as_text(report), as_json(report.document), as_markdown(report)):
        assert reported.encode("utf-8")


OTHERS = Hits()


@OTHERS.at_least(50)
@settings(max_examples=examples(150))
@given(strategies.worlds(most=3), strategies.policies(), hostile_changes())
def test_hostile_data_on_one_node_changes_no_plan_of_another(
    world: World, policy: Settings, change: dict[str, Any]
) -> None:
    # Where the settings drain for what can't be read, the node is one more in the queue of drains.
    assume(not policy.policies({}).of_kind(Kind.UNKNOWN).drain)
    # The node is ignored, so that it takes no place of another in the budget, whatever is on it.
    plain = builders.node(Z, unschedulable=True, labels={f"{PREFIX}/ignore": "true"})
    world.cluster.add_node(plain)
    hostile = copy.deepcopy(world)
    labels = {**change["labels"], **plain.labels}
    hostile.cluster.nodes[Z] = replace(hostile.cluster.nodes[Z], **{**change, "labels": labels})
    plan, _ = look(world, policy)
    other, _ = look(hostile, policy)

    OTHERS.count(sum(one.acts for one in _others(plan)))
    assert [_without_places(one) for one in _others(other)] == [_without_places(one) for one in _others(plan)]
    _readable(other)


SEEN = Hits()


@SEEN.at_least(80)
@settings(max_examples=examples(200))
@given(strategies.policies(), hostile_changes())
def test_a_managed_node_with_hostile_data_ends_no_pass_and_no_other_drain(
    policy: Settings, change: dict[str, Any]
) -> None:
    draining = builders.held_node(
        builders.record(drain=DrainRecord(NOW - timedelta(minutes=1))),
        "a",
        annotations={REQUEST: builders.DRAIN_NOW},
    )
    world = world_of([draining, replace(builders.node(Z), **change)], [builders.pod(on="a")])
    plan, _ = look(world, policy)

    SEEN.count(Z in {one.node for one in plan.nodes})
    assert plan_of(plan, "a").todo.drain is not None
    _readable(plan)


def _poisoned(seen: Snapshot, poison: Callable[[Snapshot], Snapshot]) -> tuple[Plan, Plan]:
    plain = replace(seen, readings={**seen.readings, Z: ()})
    return _planned(plain), _planned(poison(plain))


def _planned(seen: Snapshot) -> Plan:
    policy = builders.settings("budget: {maxUnavailable: 100%}")
    return decide(seen, assess(seen, NOW), policy, NOW, PARTS)


def _signal(**change: Any) -> Callable[[Snapshot], Snapshot]:
    broken = dataclasses.replace(Signal("imds", Kind.REBOOT, Status.SCHEDULED), **change)

    def poison(seen: Snapshot) -> Snapshot:
        return replace(seen, readings={**seen.readings, Z: (builders.reading(broken),)})

    return poison


def _drain_without_number(seen: Snapshot) -> Snapshot:
    # The decision fails after it took a place and a slot.
    (node,) = [one for one in seen.nodes if one.name == Z]
    broken = DrainRecord(NOW - timedelta(days=3), attempt=cast(int, None))
    record = builders.remembered(builders.record(drain=broken), node.uid)
    readings = (builders.reading(builders.signal()),)
    return replace(seen, records={**seen.records, Z: record}, readings={**seen.readings, Z: readings})


@pytest.mark.parametrize(
    "poison",
    [
        pytest.param(_signal(description=None), id="assess"),
        pytest.param(_signal(not_before=datetime.min.replace(tzinfo=UTC)), id="judge"),
        pytest.param(_drain_without_number, id="decide"),
        pytest.param(lambda seen: replace(seen, problems=Problems(nodes={Z: "OverflowError"})), id="observe"),
    ],
)
def test_an_exception_holds_its_node_and_leaves_the_others_their_plan(
    poison: Callable[[Snapshot], Snapshot], caplog: pytest.LogCaptureFixture
) -> None:
    asking = {name: (builders.reading(builders.signal()),) for name in ("a", "b")}
    seen = builders.snapshot(
        builders.node("a"), builders.node("b"), builders.node(Z, unschedulable=True), readings=asking
    )
    seen = replace(seen, drains={Z: DrainProgress(Z, f"uid-{Z}", Phase.RUNNING)})
    with caplog.at_level(logging.ERROR):
        plan, other = _poisoned(seen, poison)

    held = plan_of(other, Z)
    assert codes(held) == {INTERNAL.code}
    assert not held.acts
    assert not held.todo.stop_drain
    assert [one.starts for one in _others(other)] == [True, True]
    assert [_without_places(one) for one in _others(other)] == [_without_places(one) for one in _others(plan)]
    _readable(other)
    assert all(one.exc_info for one in caplog.records)
    assert caplog.records or seen.problems.nodes or other != plan


class _Broken(dict[str, str]):
    """Annotations that can't be read at all."""

    def __contains__(self, key: object) -> bool:
        raise OverflowError(f"{key}: out of range")

    def get(self, key: str, default: Any = None) -> Any:
        raise OverflowError(f"{key}: out of range\n{HALF}")


def test_a_node_whose_annotations_break_the_program_is_held_and_reported() -> None:
    asking = builders.node("a", annotations={REQUEST: builders.DRAIN_NOW})
    broken = replace(builders.node(Z), annotations=_Broken({RECORD: "x"}))
    world = world_of([asking, builders.node(Z)])
    world.api.nodes = lambda wanted: (asking, broken)  # type: ignore[method-assign]
    plan, _ = look(world, builders.settings("budget: {maxUnavailable: 100%}"))

    assert codes(plan_of(plan, Z)) == {INTERNAL.code}
    assert plan_of(plan, "a").starts
    _readable(plan)


@pytest.mark.parametrize("failure", [Rejected, Unreachable, TooManyRequests])
def test_one_failing_list_of_pods_holds_its_node_and_leaves_the_others_and_every_drain(
    failure: type[ClusterError],
) -> None:
    drain = DrainRecord(NOW - timedelta(minutes=1))
    held = [
        builders.held_node(builders.record(drain=drain), name, annotations={REQUEST: builders.DRAIN_NOW})
        for name in ("a", Z)
    ]
    world = world_of(held, [builders.pod(f"web-{name}", name) for name in ("a", Z)])
    fine, _ = look(copy.deepcopy(world), builders.settings())

    def fail(call: Call) -> None:
        if call.what == "pods" and call.node == Z:
            raise failure("not now")

    world.api.before_read = fail
    plan, _ = look(world, builders.settings())

    assert [_without_places(one) for one in _others(plan)] == [_without_places(one) for one in _others(fine)]
    broken = plan_of(plan, Z)
    assert PODS_READABLE.code in codes(broken)
    assert not broken.todo.stop_drain
    found = from_annotation(world.cluster.nodes[Z].annotations[RECORD], f"uid-{Z}")
    assert isinstance(found, Record)
    assert found.drain is not None
    assert found.drain.drain == drain


def test_after_three_lists_of_pods_without_an_answer_no_more_is_requested() -> None:
    drain = DrainRecord(NOW - timedelta(minutes=1))
    names = [f"n{number}" for number in range(6)]
    world = world_of([builders.held_node(builders.record(drain=drain), name) for name in names])
    asked: list[str] = []

    def fail(call: Call) -> None:
        if call.what == "pods":
            asked.append(call.node)
            raise Unreachable("no answer")

    world.api.before_read = fail
    look(world, builders.settings())

    assert asked == names[:3]


@pytest.mark.parametrize("what", ["agents", "remediator", "namespaces"])
@pytest.mark.parametrize("failure", [Rejected, Unreachable])
def test_another_read_that_fails_does_not_end_the_pass(what: str, failure: type[ClusterError]) -> None:
    over = builders.held_node(builders.record(quiet_since=NOW - builders.minutes(10)), "over")
    asking = builders.node("asking", annotations={REQUEST: builders.DRAIN_NOW})
    world = world_of([asking, over])

    def fail(call: Call) -> None:
        if call.what == what:
            raise failure("not now")

    world.api.before_read = fail
    rule = "drain: {rules: [{name: r, namespaces: {matchLabels: {a: b}}, behavior: Skip}]}"
    policy = builders.settings(f"budget: {{maxUnavailable: 100%}}\n{rule}")
    plan, _ = look(world, policy)

    assert plan_of(plan, "asking").starts
    # A drain whose rules can't be judged waits.
    expected = NAMESPACES_READABLE.code in codes(plan_of(plan, "asking"))
    assert expected == (what == "namespaces")
    assert (plan_of(plan, "asking").todo.drain is None) == (what == "namespaces")


def test_a_node_without_a_readable_ready_time_is_out_of_service_and_ends_no_pass() -> None:
    never = Node(Z, f"uid-{Z}", "1", conditions=(Condition("Ready", "False", transition=FAR),))
    plan, _ = look(world_of([never, builders.node("a")]), builders.settings())
    assert dict(plan.budget.holders) == {Z: "NotReady"}


def test_a_write_that_breaks_the_program_fails_for_its_node_only() -> None:
    asking = {REQUEST: builders.DRAIN_NOW}
    world = world_of([builders.node(name, annotations=asking) for name in ("a", Z)])

    def fail(write: Call) -> None:
        if write.what == "patch_node" and write.node == Z:
            raise UnicodeEncodeError("utf-8", HALF, 0, 1, "surrogates not allowed")

    world.api.before_write = fail
    _, outcomes = look(world, builders.settings("budget: {maxUnavailable: 100%}"))

    assert world.cluster.nodes["a"].unschedulable
    assert {one.node for one in outcomes if one.result is Result.FAILED} == {Z}


def test_pods_that_break_the_preview_of_one_node_leave_the_others_theirs() -> None:
    asking = {REQUEST: builders.DRAIN_NOW}
    draining = {
        name: builders.held_node(builders.record(drain=DrainRecord(NOW)), name, annotations=asking)
        for name in ("a", Z)
    }
    pods = {name: builders.pod(f"web-{name}", name) for name in draining}
    broken = replace(pods[Z], annotations=_Broken())
    seen = builders.snapshot(
        *draining.values(),
        readings={name: builders.reported(builders.signal(source="request")) for name in draining},
        pods={"a": (pods["a"],), Z: (pods[Z],)},
    )
    plan = builders.planned(seen)
    shown = preview(plan, replace(seen, pods={"a": (pods["a"],), Z: (broken,)}), NOW)

    fine, other = (plan_of(shown, name).draining.preview for name in ("a", Z))
    assert fine is not None
    assert [one.pod for one in fine.pods] == ["shop/web-a"]
    assert other is not None
    assert "an error in this program" in other.room[0]
