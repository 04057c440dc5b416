"""Law 13: one node's failure or one broken annotation never stops the pass for the others."""

from __future__ import annotations

import copy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.model.errors import ClusterError, Conflict, Forbidden, NotFound, Rejected, Unreachable
from reconciler.model.event import Kind
from reconciler.model.holds import INTERNAL
from reconciler.model.outcome import Result
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.values import replace
from reconciler.report.document import as_json, to_report
from reconciler.report.text import as_markdown, as_text
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.laws.histories import MAIN
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, RECORD, REQUEST
from tests.support.searching import QUARTER, examples
from tests.support.worlds import look, world_of


def _plans(plan: Plan) -> list[NodePlan]:
    return [one for one in plan.nodes if one.node != "z"]


OTHERS = Hits()


@OTHERS.at_least(50, QUARTER)
@settings(max_examples=examples(250, QUARTER))
@given(
    strategies.worlds(most=3),
    strategies.policies(),
    st.sampled_from((RECORD, IMDS, REQUEST)),
    strategies.garbage,
)
def test_a_broken_annotation_holds_its_own_node_and_changes_nothing_for_the_others(
    world: World, policy: Settings, key: str, garbage: str
) -> None:
    # Where the settings drain for what can't be read, a broken request is one more drain in the queue.
    assume(not policy.policies({}).of_kind(Kind.UNKNOWN).drain)
    # The node is cordoned, so that it holds the same place with any annotation.
    world.cluster.add_node(builders.node("z", unschedulable=True))
    broken = copy.deepcopy(world)
    broken.cluster.annotate("z", key, garbage)
    plan, _ = look(world, policy)
    other, outcomes = look(broken, policy)

    assert [one.node for one in _plans(other)] == [one.node for one in _plans(plan)]

    def without_write(one: NodePlan) -> NodePlan:
        return replace(one, todo=replace(one.todo, write=None))

    OTHERS.count(sum(one.acts for one in _plans(plan)))
    for mine, theirs in zip(_plans(plan), _plans(other), strict=True):
        assert without_write(theirs) == without_write(mine)
        assert (theirs.todo.write is None) == (mine.todo.write is None)
    # Damage that is to be expected has a hold of its own; `internal` is for errors in this program.
    assert INTERNAL.code not in {hold.code for one in other.nodes for hold in one.holds}
    report = to_report(other, outcomes, rehearsed=False)
    for reported in (as_text(report), as_json(report.document), as_markdown(report)):
        assert reported.encode("utf-8")


BESIDE = Hits()


@BESIDE.at_least(40, QUARTER)
@settings(max_examples=examples(100, QUARTER))
@given(strategies.worlds(most=3), strategies.policies(), st.text(max_size=60))
def test_an_unreadable_message_stops_nothing(world: World, policy: Settings, message: str) -> None:
    world.cluster.add_node(builders.node("z", conditions=(builders.condition(MAIN, "True", message),)))
    plan, _ = look(world, policy)

    BESIDE.count(sum(one.acts for one in _plans(plan)))
    assert "z" in {one.node for one in plan.nodes}


REFUSED = Hits()


@REFUSED.at_least(12, QUARTER)
@settings(max_examples=examples(100, QUARTER))
@given(
    strategies.worlds(most=4),
    strategies.policies(),
    st.sampled_from(("n0", "n1")),
    st.sampled_from((Conflict, NotFound, Forbidden, Unreachable, Rejected)),
)
def test_a_failed_write_is_reported_and_the_others_are_made(
    world: World, policy: Settings, name: str, failure: type[ClusterError]
) -> None:
    def fail(write: Call) -> None:
        if write.what == "patch_node" and write.node == name:
            REFUSED.count()
            raise failure("no")

    world.api.before_write = fail
    plan, outcomes = look(world, policy)

    wanted = {one.node for one in plan.nodes if one.todo.write is not None}
    assert {write.node for write in world.api.done if write.what == "patch_node"} == wanted - {name}
    failed = [one for one in outcomes if one.notable]
    assert {one.node for one in failed} == wanted & {name}
    assert {one.detail for one in failed} <= {"no"}


@pytest.mark.parametrize("failure", [Forbidden, Unreachable, Rejected])
def test_where_the_ledger_can_not_be_written_only_what_would_start_waits(failure: type[ClusterError]) -> None:
    over = builders.held_node(builders.record(quiet_since=NOW - builders.minutes(10)), "over")
    asking = builders.node("asking", annotations={REQUEST: builders.DRAIN_NOW})
    world = world_of([asking, over, builders.node("third"), builders.node("fourth")])

    def fail(write: Call) -> None:
        if write.what == "write_ledger":
            raise failure("no")

    world.api.before_write = fail
    policy = builders.settings("budget: {maxUnavailable: 4, spacing: 10m}")
    _, outcomes = look(world, policy)

    assert not world.cluster.nodes["over"].unschedulable
    assert not world.cluster.nodes["asking"].unschedulable
    assert [one.action for one in outcomes if one.result is Result.FAILED] == ["write ledger"]


def test_half_a_surrogate_pair_in_a_request_does_not_break_the_report() -> None:
    text = '{"kind":"Freeze","reason":"\\ud800"}'
    world = world_of([builders.node("z", annotations={REQUEST: text})])
    plan, outcomes = look(world, builders.settings())
    report = to_report(plan, outcomes, rehearsed=False)

    assert "\ufffd" in as_text(report)
    assert as_text(report).encode("utf-8")
    assert as_json(report.document).encode("utf-8")
    assert as_markdown(report).encode("utf-8")
