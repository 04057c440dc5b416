"""Carrying a plan out: what is written first, what a failure stops, and what it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.act import act
from reconciler.errors import ClusterError, Conflict, Forbidden, LockLost, NotFound, Unreachable
from reconciler.model.actions import outcome_name
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import DrainRecord, State
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes
from tests.support.fakes.cluster import FakeCluster, FakeDrains, Write, cluster_of, one_pass, outside_of

TWO = "budget: {maxUnavailable: 2}"
SPACED = "budget: {maxUnavailable: 2, spacing: 1s, exempt: [Reboot]}"


def _asking(*names: str) -> FakeCluster:
    return cluster_of([builders.node(name, annotations={REQUEST: builders.DRAIN_NOW}) for name in names])


def _act(cluster: FakeCluster, drains: FakeDrains, text: str = TWO) -> tuple[Outcome, ...]:
    return one_pass(cluster, drains, builders.settings(text), NOW)[1]


def _failing(name: str, error: Exception, verb: str = "patch") -> Callable[[Write], None]:
    def fail(write: Write) -> None:
        if (write.verb, write.node) == (verb, name):
            raise error

    return fail


def test_every_node_is_cordoned_before_the_first_is_drained() -> None:
    cluster = _asking("a", "b")
    drains = FakeDrains(cluster)
    outcomes = _act(cluster, drains)

    assert [(one.node, one.action, one.result) for one in outcomes] == [
        ("a", "cordon", Result.DONE),
        ("b", "cordon", Result.DONE),
        ("a", "drain", Result.DONE),
        ("b", "drain", Result.DONE),
    ]
    assert sorted(drains.orders) == ["a", "b"]


def test_the_ledger_is_written_before_the_start_that_it_speaks_of() -> None:
    cluster = _asking("a", "b")
    _act(cluster, FakeDrains(cluster), SPACED)

    assert [write.verb for write in cluster.writes] == ["ledger", "patch", "patch", "event", "event"]


@pytest.mark.parametrize(
    ("error", "result"),
    [
        pytest.param(Conflict("changed"), Result.LATER, id="somebody changed it"),
        pytest.param(NotFound("gone"), Result.LATER, id="it has gone"),
        pytest.param(Forbidden("no"), Result.FAILED, id="it may not be written"),
        pytest.param(Unreachable("no"), Result.FAILED, id="the server is away"),
    ],
)
def test_a_node_that_could_not_be_written_is_not_drained_and_not_told_of(
    error: ClusterError, result: Result
) -> None:
    cluster = _asking("a", "b")
    cluster.before = _failing("a", error)
    drains = FakeDrains(cluster)
    outcomes = _act(cluster, drains)

    assert outcomes[0] == Outcome("a", "cordon", result, str(error))
    assert list(drains.orders) == ["b"]
    assert [write.node for write in cluster.writes if write.verb == "event"] == ["b"]


def test_a_lost_lock_ends_everything_at_once() -> None:
    cluster = _asking("a", "b")
    cluster.before = _failing("a", LockLost("not renewed"))
    drains = FakeDrains(cluster)

    with pytest.raises(LockLost):
        _act(cluster, drains)
    assert (cluster.writes, drains.orders) == ([], {})


def test_without_the_ledger_nothing_starts() -> None:
    cluster = _asking("a", "b")
    cluster.before = _failing("", Forbidden("no"), "ledger")
    drains = FakeDrains(cluster)

    assert _act(cluster, drains, SPACED) == (Outcome("", "write ledger", Result.FAILED, "no"),)
    assert (cluster.writes, drains.orders) == ([], {})


def test_a_node_changed_since_it_was_seen_is_left_to_the_next_pass() -> None:
    cluster = _asking("a", "b")

    def uncordon(write: Write) -> None:
        if write.verb == "patch":
            cluster.change(write.node, unschedulable=True)

    cluster.before = uncordon
    outcomes = _act(cluster, FakeDrains(cluster))

    assert {one.result for one in outcomes} == {Result.LATER}


def test_a_node_that_somebody_else_wrote_in_what_is_not_ours_is_written_all_the_same() -> None:
    cluster = _asking("a", "b")
    cluster.before = lambda write: (
        cluster.annotate(write.node, "example.com/x", "y") if write.verb == "patch" else None
    )
    outcomes = _act(cluster, FakeDrains(cluster))

    assert {one.result for one in outcomes} == {Result.DONE}


def test_drains_are_stopped_before_anything_is_written() -> None:
    held = builders.record(drain=DrainRecord(NOW - minutes(1)))
    cluster = cluster_of([builders.held_node(held)])
    drains = FakeDrains(cluster)
    order = builders.plan_of(
        builders.planned(
            builders.snapshot(*cluster.objects.values(), readings={"a": builders.told(builders.signal())})
        )
    ).drain
    assert order is not None
    drains.start(order)
    running: list[bool] = []
    cluster.before = lambda write: running.append("a" in drains.orders)
    outcomes = _act(cluster, drains)

    assert [(one.action, one.result) for one in outcomes] == [
        ("stop drain", Result.DONE),
        ("update record", Result.DONE),
    ]
    assert running == [False]


def test_an_empty_plan_writes_nothing() -> None:
    cluster = FakeCluster()

    assert act(Plan(NOW, "Enforce"), outside_of(cluster, FakeDrains(cluster))) == ()
    assert cluster.writes == []


def test_nothing_to_write_has_no_name() -> None:
    assert outcome_name(NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL)) == ""


def test_people_are_told_after_every_drain_has_begun() -> None:
    cluster = _asking("a", "b")
    drains = FakeDrains(cluster)
    begun: list[list[str]] = []
    cluster.before = lambda write: begun.append(sorted(drains.orders)) if write.verb == "event" else None
    _act(cluster, drains)

    assert begun == [["a", "b"], ["a", "b"]]


def test_people_are_told_after_other_tools_were_shown() -> None:
    cluster = _asking("a")
    _act(cluster, FakeDrains(cluster), f"{TWO}\npublish: [node-conditions]")

    assert [write.verb for write in cluster.writes] == ["patch", "conditions", "event"]
