"""Nodes that a label asks to delete: drained within the budget, deleted in OpenStack, and replaced."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.features.kubernikus.settings import UPDATE_LABEL
from reconciler.model.snapshot import ServerVersion
from reconciler.model.values import replace
from reconciler.settings.grants import grants_of
from reconciler.simulation.api import Call, ProcessKilled
from tests.features.kubernikus.kluster import NEW, OLD, ON, PROFILES, Kluster
from tests.support import builders
from tests.support.builders import minutes
from tests.support.fakes.openstack import FakeOpenStack, Refusal, identity
from tests.support.searching import kills


@pytest.fixture
def cloud() -> Iterator[FakeOpenStack]:
    with FakeOpenStack() as made:
        yield made


# The label about kubelets.


@pytest.mark.parametrize(
    ("kubelet", "said"),
    [(OLD, "true"), ("v1.34.0", "true"), (NEW, "false"), (f"{NEW}-ccloud.1", "false"), ("unknown", "")],
)
def test_each_node_says_whether_its_kubelet_needs_an_update(
    cloud: FakeOpenStack, kubelet: str, said: str
) -> None:
    kluster = Kluster(cloud, count=0)
    node = kluster.add(kubelet)
    kluster.look()
    assert kluster.marks() == {node.name: said}

    writes = kluster.world.api.writes
    kluster.look()
    assert kluster.world.api.writes == writes


def test_without_the_version_of_the_server_the_label_stays(cloud: FakeOpenStack) -> None:
    kluster = Kluster(cloud, count=0)
    kluster.add(NEW)
    kluster.look()
    kluster.cluster.server_version = ServerVersion(problem="no answer")
    kluster.look()

    assert list(kluster.marks().values()) == ["false"]


def test_switched_off_it_writes_no_label_and_deletes_nothing(cloud: FakeOpenStack) -> None:
    # The version of the API server is read for the source.
    kluster = Kluster(cloud, "sources: {kubernikus: {enabled: true}}", count=1)
    (name,) = kluster.names()
    kluster.delete(name)
    for _ in range(4):
        kluster.look()

    assert kluster.marks() == {name: ""}
    assert cloud.asked == []


# Deletions.


def test_a_node_is_drained_and_deleted_and_the_next_waits_for_its_replacement(cloud: FakeOpenStack) -> None:
    kluster = Kluster(cloud)
    first, second, _ = kluster.names()
    kluster.delete(first)
    kluster.delete(second)
    for _ in range(4):
        kluster.look()
    assert cloud.deletions() == [f"DELETE /compute/v2.1/servers/{identity(1)}"]
    assert first not in {pod.node for pod in kluster.cluster.pods.values()}

    # The server has gone, then the node, and the replacement is not Ready.
    cloud.step()
    plan = kluster.look(minutes(1))
    assert "its machine is being deleted" in " ".join(kluster.reasons(plan, first).values())
    kluster.cluster.delete_node(first)
    for _ in range(3):
        kluster.look(minutes(1))
    kluster.ready = False
    late = kluster.add(NEW)
    for _ in range(3):
        kluster.look(minutes(1))
    assert len(cloud.deletions()) == 1
    assert not kluster.cluster.nodes[second].unschedulable

    there = kluster.cluster.nodes[late.name]
    healthy = tuple(replace(one, status="True", transition=kluster.world.now) for one in there.conditions)
    kluster.cluster.put_node(replace(there, conditions=healthy))
    for _ in range(4):
        kluster.look(minutes(1))
    assert len(cloud.deletions()) == 2


def test_a_deletion_that_the_original_had_begun_goes_on(cloud: FakeOpenStack) -> None:
    kluster = Kluster(cloud, count=2)
    first, _ = kluster.names()
    kluster.delete(first)
    kluster.cluster.cordon(first)
    for _ in range(4):
        kluster.look()

    assert len(cloud.deletions()) == 1
    assert first not in {pod.node for pod in kluster.cluster.pods.values()}


def test_a_label_that_goes_and_another_value_delete_nothing(cloud: FakeOpenStack) -> None:
    kluster = Kluster(cloud, count=1)
    (name,) = kluster.names()
    kluster.delete(name, "yes")
    kluster.look()
    assert not kluster.cluster.nodes[name].unschedulable

    cloud.servers[identity(1)].name = "other"
    kluster.delete(name)
    for _ in range(3):
        plan = kluster.look()
    assert f"server {identity(1)} has the name 'other'" in kluster.reasons(plan, name)["offerDue"]
    kluster.delete(name, None)
    for _ in range(3):
        kluster.look(minutes(3))

    assert not kluster.cluster.nodes[name].unschedulable
    assert cloud.deletions() == []


def test_a_node_that_somebody_uncordons_is_left_alone(cloud: FakeOpenStack) -> None:
    kluster = Kluster(cloud, count=1)
    (name,) = kluster.names()
    cloud.servers[identity(1)].locked = True
    kluster.delete(name)
    for _ in range(3):
        kluster.look()
    kluster.cluster.cordon(name, on=False)
    asked = len(cloud.deletions())
    for _ in range(4):
        kluster.look(minutes(5))

    assert not kluster.cluster.nodes[name].unschedulable
    assert len(cloud.deletions()) == asked


def test_a_cloud_that_is_away_holds_its_node_until_it_is_back(cloud: FakeOpenStack) -> None:
    kluster = Kluster(cloud, count=2)
    first, _ = kluster.names()
    cloud.refuse["/compute"] = [Refusal(503)] * 3
    kluster.delete(first)
    for _ in range(3):
        plan = kluster.look()
    assert "OpenStack: HTTP 503" in kluster.reasons(plan, first)["offerDue"]

    cloud.refuse.clear()
    kluster.restart()
    kluster.look()
    kluster.look()
    assert len(cloud.deletions()) == 1


# The example of the Kubernikus controller.


def test_kubelets_are_updated_one_after_the_other_by_the_example(cloud: FakeOpenStack) -> None:
    kluster = Kluster(cloud, PROFILES, profile="flatcar--kubelet")
    old = set(kluster.names())
    out = 0
    for _ in range(60):
        kluster.look(minutes(1))
        out = max(out, sum(node.unschedulable for node in kluster.cluster.nodes.values()))
        kluster.step()

    assert old.isdisjoint(kluster.names())
    assert set(kluster.marks().values()) == {"false"}
    assert len(cloud.deletions()) == len(kluster.names()) == 3
    assert out == 1


AFTER = 5
"""Passes after the last kubelet is new: nothing more may be deleted."""


@pytest.mark.heavy
@pytest.mark.parametrize("when", ["before_write", "after_write"])
def test_killed_at_any_write_it_ends_the_same(when: str) -> None:
    def run(kill_at: int | None) -> tuple[Kluster, int]:
        with FakeOpenStack() as cloud:
            kluster = Kluster(cloud, PROFILES, count=2, profile="kubelet")
            count = 0

            def hook(_: Call) -> None:
                nonlocal count
                count += 1
                if count - 1 == kill_at:
                    raise ProcessKilled

            setattr(kluster.world.api, when, hook)
            ended = 0
            for _ in range(40):
                try:
                    kluster.look(minutes(1))
                except ProcessKilled:
                    kluster.world.restart()
                    kluster.restart()
                kluster.step()
                ended += set(kluster.marks().values()) == {"false"}
                if ended == AFTER:
                    break
            return kluster, count

    whole, writes = run(None)
    assert set(whole.marks().values()) == {"false"}
    for kill_at in kills(writes):
        kluster, _ = run(kill_at)
        assert set(kluster.marks().values()) == {"false"}, kill_at
        assert len(kluster.names()) == 2, kill_at


def test_the_label_is_among_what_check_config_asks_for() -> None:
    assert grants_of(builders.settings(ON)).keys == {"Labels": (UPDATE_LABEL,)}
    assert not grants_of(builders.settings()).any
