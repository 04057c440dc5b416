"""The Leases of the check `stagger`, on the real API server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.turns import Turns
from reconciler.model.errors import Conflict, LockLost, NotFound, Rejected
from reconciler.model.leases import LeaseRef, LeaseTake
from tests.support.controlplane.server import ControlPlane

REF = LeaseRef("default", "turn-0")
NOW = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def turns(connection: Connection) -> Turns:
    """Reads and takes Leases without a lock."""
    return Turns(connection, lambda: None)


def taking(turns: Turns, holder: str, at: datetime = NOW, length: timedelta = MINUTE) -> LeaseTake:
    """What a node takes that reads the Lease now."""
    return LeaseTake(REF, holder, at, length, turns.lease(REF))


def test_a_lease_that_does_not_exist_is_created(cluster: ControlPlane, turns: Turns) -> None:
    assert turns.lease(REF) is None

    turns.take_lease(taking(turns, "node-a"))

    found = turns.lease(REF)
    assert found is not None
    assert (found.holder, found.renewed, found.duration, found.transitions) == ("node-a", NOW, MINUTE, 0)
    assert found.until == NOW + MINUTE


def test_the_next_node_takes_it_and_keeps_what_others_wrote(cluster: ControlPlane, turns: Turns) -> None:
    turns.take_lease(taking(turns, "node-a"))
    cluster.api.patch("leases", REF.name, {"metadata": {"labels": {"team": "ops"}}}, REF.namespace)

    turns.take_lease(taking(turns, "node-b", NOW + MINUTE, timedelta(milliseconds=200)))

    found = turns.lease(REF)
    assert found is not None
    # The API has whole seconds, from 1 on.
    assert (found.holder, found.duration, found.transitions) == ("node-b", timedelta(seconds=1), 1)
    assert cluster.api.get("leases", REF.name, REF.namespace)["metadata"]["labels"] == {"team": "ops"}


def test_of_two_nodes_that_saw_it_free_one_gets_it(cluster: ControlPlane, turns: Turns) -> None:
    both_saw_none = taking(turns, "node-a"), taking(turns, "node-b")
    turns.take_lease(both_saw_none[0])
    with pytest.raises(Conflict):
        turns.take_lease(both_saw_none[1])
    both_saw_it = (taking(turns, "node-b", NOW + MINUTE), taking(turns, "node-c", NOW + MINUTE))
    turns.take_lease(both_saw_it[0])
    with pytest.raises(Conflict):
        turns.take_lease(both_saw_it[1])

    found = turns.lease(REF)
    assert found is not None
    assert found.holder == "node-b"


@pytest.mark.parametrize("exists", [False, True])
def test_a_write_whose_answer_was_lost_is_no_conflict(
    cluster: ControlPlane, turns: Turns, exists: bool
) -> None:
    if exists:
        turns.take_lease(taking(turns, "node-a"))
    again = taking(turns, "node-b", NOW + MINUTE)
    turns.take_lease(again)
    before = turns.lease(REF)

    turns.take_lease(again)

    assert turns.lease(REF) == before


def test_a_namespace_that_does_not_exist_is_named(cluster: ControlPlane, turns: Turns) -> None:
    elsewhere = LeaseRef("nowhere", "turn-0")

    assert turns.lease(elsewhere) is None
    with pytest.raises(
        NotFound, match=r"the Lease nowhere/turn-0 can't be written: .*the namespace must exist"
    ):
        turns.take_lease(LeaseTake(elsewhere, "node-a", NOW, MINUTE))


def test_nothing_is_taken_without_the_lock(cluster: ControlPlane, connection: Connection) -> None:
    def lost() -> None:
        raise LockLost("it was taken")

    guarded = Turns(connection, lost)
    with pytest.raises(LockLost):
        guarded.take_lease(LeaseTake(REF, "node-a", NOW, MINUTE))

    assert guarded.lease(REF) is None


def test_a_lease_that_nobody_has_taken_has_no_end(cluster: ControlPlane, turns: Turns) -> None:
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": REF.name}}
    cluster.api.create("leases", body)

    found = turns.lease(REF)

    assert found is not None
    assert (found.holder, found.until) == ("", None)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"renewTime": "9999-01-01T00:00:00.000000Z", "leaseDurationSeconds": 1},
            "its renewTime can't be read",
        ),
        ({"leaseDurationSeconds": 2**31 - 1}, "more than a year"),
    ],
)
def test_times_outside_of_the_limits_are_an_error(
    cluster: ControlPlane, turns: Turns, spec: dict[str, object], said: str
) -> None:
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": REF.name}}
    cluster.api.create("leases", {**body, "spec": spec})

    with pytest.raises(Rejected, match=f"default/turn-0: .*{said}.*; delete it"):
        turns.lease(REF)
