"""Nodes that take turns by Leases, in whole passes: what a waiting node writes, and what a kill costs."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from reconciler.features.workflows.services import NAME
from reconciler.model.leases import LeaseRef
from reconciler.settings.load import parse_settings
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.worlds import look, world_of

DATA = "cloud.sap/maintenance-data"
TURN = LeaseRef("ops", "turns-0")
SETTINGS = parse_settings(
    """\
intervals: {requeue: 1s}
instances:
  check:
  - {type: stagger, name: turn, config: {duration: 1m, leaseName: turns, leaseNamespace: ops}}
profiles:
- name: default
  operational:
    transitions: [{check: turn, next: in-maintenance}]
""",
    "their.yaml",
)


def inside(world: World) -> set[str]:
    """The nodes in maintenance."""
    found = {name: json.loads(node.annotations[DATA]) for name, node in world.cluster.nodes.items()}
    states = {name: data["Profiles"]["default"]["Current"] for name, data in found.items()}
    return {name for name, state in states.items() if state == "in-maintenance"}


def test_a_node_that_waits_for_its_turn_writes_nothing() -> None:
    world = world_of([builders.node("a"), builders.node("b")])
    for _ in range(3):
        plan, _ = look(world, SETTINGS)
        world.advance(timedelta(seconds=1))
    before = len(world.api.done)

    plan, outcomes = look(world, SETTINGS)

    assert inside(world) == {"a"}
    assert (len(world.api.done), outcomes) == (before, ())
    assert plan.next_change is not None
    assert plan.next_change - world.cluster.clock.now() <= timedelta(minutes=1)


@pytest.mark.parametrize("after", [False, True])
def test_a_pass_that_is_killed_at_a_lease_costs_a_turn_at_most(after: bool) -> None:
    world = world_of([builders.node("a"), builders.node("b")])

    def kill(call: Call) -> None:
        if call.what == "take_lease":
            raise ProcessKilled

    if after:
        world.api.after_write = kill
    else:
        world.api.before_write = kill
    with pytest.raises(ProcessKilled):
        look(world, SETTINGS)
    world.api.after_write = world.api.before_write = None
    world.restart()
    assert (TURN in world.clients[NAME].leases) is after

    for _ in range(4):
        look(world, SETTINGS)
        world.advance(timedelta(seconds=61))

    assert inside(world) == {"a", "b"}
