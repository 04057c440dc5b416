"""Self-service killed between any two of its writes: the next process goes on, and the end is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from reconciler.model.machine import Scope
from reconciler.model.polling import Listing
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.sources.arm.source import PerformMaintenance, Planned
from tests.support.builders import NOW, minutes, pod
from tests.support.cases import PROVIDER_ID, START, TAKEN, azure_node
from tests.support.searching import kills
from tests.support.worlds import carry_on, look, starts_on_open_nodes, world_of

OFFERED = Planned(True, NOW - timedelta(days=1), START, START, START + timedelta(days=7))
TAKES = timedelta(minutes=6)


@dataclass(slots=True)
class FakeCloud:
    """Azure with one VM: maintenance takes some minutes, and the VM boots in them."""

    cluster: SimulatedCluster
    performed: list[int] = field(default_factory=list)
    now: int = 0
    die: str = ""

    def ask(self, scopes: Sequence[Scope]) -> tuple[Listing[Scope, Planned], ...]:
        """Tell of the plan until it is done."""
        done = self.performed and self.now >= self.performed[0] + TAKES.seconds // 60
        planned = () if done else (("7", replace(OFFERED, offered=not self.performed)),)
        return tuple(Listing(scope, planned, frozenset({"7"})) for scope in scopes)

    def perform(self, action: PerformMaintenance, /) -> None:
        """Begin."""
        assert action.vm.name == "7"
        node = self.cluster.nodes[action.node]
        assert node.unschedulable
        assert self.cluster.pods_on(action.node) == ()
        if self.die == "before":
            self.die = ""
            raise ProcessKilled
        self.performed.append(self.now)
        if self.die == "after":
            self.die = ""
            raise ProcessKilled

    def pass_time(self, minute: int) -> None:
        """Boot the VM in the middle of it."""
        self.now = minute
        if self.performed and minute == self.performed[0] + 3:
            self.cluster.put_node(replace(self.cluster.nodes["a"], boot_id="boot-2"))


def run(kill: int | None = None, die: str = "") -> tuple[SimulatedCluster, FakeCloud, list[str]]:
    """Run passes for three hours, a process killed at the write of that number."""
    world = world_of([replace(azure_node(), unschedulable=False)], [pod("web", "a")])
    cluster = world.cluster
    cloud = FakeCloud(cluster, die=die)
    world.clients["arm"] = cloud
    count = 0

    def hook(write: Call) -> None:
        nonlocal count
        del write
        count += 1
        if count == kill:
            raise ProcessKilled

    world.api.after_write = hook
    states: list[str] = []
    for minute in range(180):
        world.clock.advance(NOW + minutes(minute))
        cloud.pass_time(minute)
        try:
            look(world, TAKEN)
            carry_on(world)
        except ProcessKilled:
            world.restart()
        label = cluster.nodes["a"].labels.get("node-maintenance.dev/state", State.OPERATIONAL.value)
        if not states or states[-1] != label:
            states.append(label)
    assert starts_on_open_nodes(world) == []
    return cluster, cloud, states


WHOLE = ["in-maintenance", "operational"]


def test_undisturbed_it_is_done_once_and_the_node_comes_back() -> None:
    cluster, cloud, states = run()

    assert len(cloud.performed) == 1
    assert states == WHOLE
    assert not cluster.nodes["a"].unschedulable
    assert "node-maintenance.dev/record" not in cluster.nodes["a"].annotations
    # Before its end: the plan gone, a new boot, Ready.
    assert cloud.performed[0] + 6 < 180
    assert cluster.nodes["a"].provider_id == PROVIDER_ID


@pytest.mark.heavy
@pytest.mark.parametrize("kill", kills(15))
def test_killed_after_any_write_it_is_done_once_and_the_node_comes_back(kill: int) -> None:
    cluster, cloud, states = run(kill)

    assert len(cloud.performed) == 1
    assert states[-2:] == WHOLE
    assert not cluster.nodes["a"].unschedulable
    assert "node-maintenance.dev/record" not in cluster.nodes["a"].annotations


@pytest.mark.parametrize("die", ["before", "after"])
def test_killed_around_the_request_itself_it_is_done_once(die: str) -> None:
    cluster, cloud, states = run(die=die)

    assert len(cloud.performed) == 1
    assert states == WHOLE
    assert not cluster.nodes["a"].unschedulable
