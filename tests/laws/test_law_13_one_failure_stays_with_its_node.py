"""Law 13: one node's failure or one broken annotation never stops the pass for the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.errors import ClusterError, Conflict, Forbidden, NotFound, Rejected, Unreachable
from reconciler.model.event import Kind
from reconciler.model.outcome import Result
from reconciler.model.plan import NodePlan, Plan
from reconciler.report.document import as_json, to_document
from reconciler.report.markdown import as_markdown
from reconciler.report.text import as_text
from reconciler.settings.schema import Settings
from tests.laws.histories import MAIN
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, RECORD, REQUEST
from tests.support.fakes.cluster import FakeCluster, FakeDrains, Write, cluster_of, one_pass


def _plans(plan: Plan) -> list[NodePlan]:
    return [one for one in plan.nodes if one.node != "z"]


@settings(max_examples=250)
@given(
    strategies.clusters(most=3),
    strategies.policies(),
    st.sampled_from((RECORD, IMDS, REQUEST)),
    strategies.garbage,
)
def test_a_broken_annotation_holds_its_own_node_and_changes_nothing_for_the_others(
    cluster: FakeCluster, policy: Settings, key: str, garbage: str
) -> None:
    # Where the settings drain for what can't be read, a broken request is one more drain in the queue.
    assume(not policy.event_policy(Kind.UNKNOWN, {}).drain)
    # The node is cordoned, so that it holds the same place whatever is on it.
    cluster.put(builders.node("z", unschedulable=True))
    healthy, broken = replace(cluster), replace(cluster, objects=dict(cluster.objects))
    healthy.objects = dict(cluster.objects)
    broken.annotate("z", key, garbage)
    plan, _ = one_pass(healthy, FakeDrains(healthy), policy, NOW)
    other, outcomes = one_pass(broken, FakeDrains(broken), policy, NOW)

    assert [one.node for one in _plans(other)] == [one.node for one in _plans(plan)]
    for mine, theirs in zip(_plans(plan), _plans(other), strict=True):
        assert replace(theirs, write=None) == replace(mine, write=None)
        assert (theirs.write is None) == (mine.write is None)
    document = to_document(other, outcomes, rehearsed=False)
    for told in (as_text(document), as_json(document), as_markdown(document)):
        assert told.encode("utf-8")


@settings(max_examples=100)
@given(strategies.clusters(most=3), strategies.policies(), st.text(max_size=60))
def test_a_message_that_nobody_can_read_stops_nothing(
    cluster: FakeCluster, policy: Settings, message: str
) -> None:
    cluster.put(builders.node("z", conditions=(builders.condition(MAIN, "True", message),)))
    plan, _ = one_pass(cluster, FakeDrains(cluster), policy, NOW)

    assert "z" in {one.node for one in plan.nodes}


@settings(max_examples=100)
@given(
    strategies.clusters(most=4),
    strategies.policies(),
    st.sampled_from(("n0", "n1")),
    st.sampled_from((Conflict, NotFound, Forbidden, Unreachable, Rejected)),
)
def test_a_write_that_fails_is_told_and_the_others_are_made(
    cluster: FakeCluster, policy: Settings, name: str, failure: type[ClusterError]
) -> None:
    def fail(write: Write) -> None:
        if write.verb == "patch" and write.node == name:
            raise failure("no")

    cluster.before = fail
    plan, outcomes = one_pass(cluster, FakeDrains(cluster), policy, NOW)

    wanted = {one.node for one in plan.nodes if one.write is not None}
    assert {write.node for write in cluster.writes if write.verb == "patch"} == wanted - {name}
    assert {one.node for one in outcomes if one.result is not Result.DONE} == wanted & {name}


@pytest.mark.parametrize("failure", [Forbidden, Unreachable, Rejected])
def test_where_the_ledger_can_not_be_written_only_what_would_start_waits(
    failure: type[ClusterError],
) -> None:
    over = builders.held_node(builders.record(quiet_since=NOW - builders.minutes(10)), "over")
    asking = builders.node("asking", annotations={REQUEST: builders.DRAIN_NOW})
    cluster = cluster_of([asking, over, builders.node("third"), builders.node("fourth")])

    def fail(write: Write) -> None:
        if write.verb == "ledger":
            raise failure("no")

    cluster.before = fail
    policy = builders.settings("budget: {maxUnavailable: 4, spacing: 10m}")
    _, outcomes = one_pass(cluster, FakeDrains(cluster), policy, NOW)

    assert not cluster.objects["over"].unschedulable
    assert not cluster.objects["asking"].unschedulable
    assert [one.action for one in outcomes if one.result is Result.FAILED] == ["write ledger"]


def test_half_a_surrogate_pair_in_a_request_does_not_break_the_report() -> None:
    text = '{"kind":"Freeze","reason":"\\ud800"}'
    cluster = cluster_of([builders.node("z", annotations={REQUEST: text})])
    plan, outcomes = one_pass(cluster, FakeDrains(cluster), builders.settings(), NOW)
    document = to_document(plan, outcomes, rehearsed=False)

    assert b"\\ud800" in as_text(document).encode("utf-8")
    assert b"\\ud800" in as_json(document).encode("utf-8")
    assert as_markdown(document).encode("utf-8")
