"""Pods of a node whose drain watches them need no request."""

from __future__ import annotations

from datetime import timedelta

from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import REQUEST
from tests.support.worlds import carry_on, look, world_of

SETTINGS = builders.settings("budget: {maxUnavailable: 2}")


def reads_of(world: World) -> list[str]:
    """Return the nodes whose pods are read from now on."""
    read: list[str] = []
    world.api.before_read = lambda call: read.append(call.node) if call.what == "pods" else None
    return read


def test_a_pass_that_cordons_a_node_reads_no_pods_of_a_drain_that_has_just_begun() -> None:
    first, second = (builders.node(name, annotations={REQUEST: builders.DRAIN_NOW}) for name in "ab")
    world = world_of([first], [builders.pod("web-1")])
    look(world, SETTINGS)
    world.cluster.add_node(second)
    read = reads_of(world)
    look(world, SETTINGS)
    assert world.cluster.nodes["b"].unschedulable
    assert read == []
    look(world, SETTINGS)
    assert read == ["a", "b"]


def test_a_pass_reads_no_pods_of_a_node_whose_drain_watches_them() -> None:
    pods = [builders.pod("stuck", deleting_until=builders.NOW + timedelta(hours=1))]
    world = world_of([builders.node("a", annotations={REQUEST: builders.DRAIN_NOW})], pods)
    world.cluster.finalizers.add(pods[0].uid)
    look(world, SETTINGS)
    carry_on(world)
    read = reads_of(world)
    plan, _ = look(world, SETTINGS)
    assert read == []
    assert plan.nodes[0].draining.progress is not None

    # A new process has no watch yet.
    world.restart()
    look(world, SETTINGS)
    assert "a" in read
