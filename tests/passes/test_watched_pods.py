"""Pods of a node whose drain watches them need no request."""

from __future__ import annotations

from datetime import timedelta

from reconciler.simulation.api import Call
from tests.support import builders
from tests.support.builders import REQUEST
from tests.support.worlds import carry_on, look, world_of


def test_a_pass_reads_no_pods_of_a_node_whose_drain_watches_them() -> None:
    pods = [builders.pod("stuck", deleting_until=builders.NOW + timedelta(hours=1))]
    world = world_of([builders.node("a", annotations={REQUEST: builders.DRAIN_NOW})], pods)
    world.cluster.finalizers.add(pods[0].uid)
    look(world, builders.settings("budget: {maxUnavailable: 1}"))
    carry_on(world)
    read: list[str] = []

    def note(call: Call) -> None:
        if call.what == "pods":
            read.append(call.node)

    world.api.before_read = note
    plan, _ = look(world, builders.settings("budget: {maxUnavailable: 1}"))
    assert read == []
    assert plan.nodes[0].draining.progress is not None

    # A new process has no watch yet.
    world.restart()
    look(world, builders.settings("budget: {maxUnavailable: 1}"))
    assert "a" in read
