"""Whole passes on the real API server: machines of four providers are replaced, nodes drained first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.features.machines.agent_pools import AgentPools
from reconciler.features.machines.process import CLIENTS
from tests.features.machines import fake_agent_pools as agent_pools
from tests.features.machines.all_providers import all_machines
from tests.features.machines.fake_agent_pools import FakeAgentPools
from tests.real.passes.scene import PassReport, Scene
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.machines import MachineWorld
from tests.support.controlplane.processes import wait_for

REPLACES = "budget: {maxUnavailable: 1}\nevents: {Redeploy: {replace: true}}\n"


@pytest.fixture
def world(scene: Scene) -> Iterator[MachineWorld]:
    scene.api.create_namespace("node-maintenance")
    scene.machines = all_machines(scene.connection, guard=lambda: None)
    scene.set(REPLACES)
    world = MachineWorld(scene.api)
    yield world
    world.clear()


@pytest.fixture
def aks(scene: Scene) -> Iterator[FakeAgentPools]:
    scene.api.create_namespace("node-maintenance")
    scene.set(REPLACES)
    with FakeAgentPools() as fake:
        pools = AgentPools(agent_pools.CLUSTER, fake.pipeline(), guard=lambda: None)
        scene.machines = all_machines(
            scene.connection, guard=lambda: None, clients={**CLIENTS, "AKS": lambda _: pools}
        )
        yield fake
        assert fake.violations == []


def rest(scene: Scene) -> PassReport:
    """Passes until one does nothing more; what the last one reported."""
    report = scene.finish()
    while any(node["actions"] for node in report.document["nodes"]):
        report = scene.finish()
    return report


def nodes(scene: Scene) -> list[str]:
    return sorted(str(one["metadata"]["name"]) for one in scene.api.list("nodes"))


def test_a_machine_set_s_node_is_drained_and_its_machine_replaced(scene: Scene, world: MachineWorld) -> None:
    world.make(["one", "two"])
    scene.workload("web", "one")
    scene.condition_tells("one", "Redeploy")
    report = rest(scene)

    assert scene.pods_on("one") == []
    assert scene.cordoned("one")
    assert "being deleted" in report.holds("one")["machineStays"]
    world.settle()
    assert "one" not in nodes(scene)
    assert len(nodes(scene)) == 2
    assert world.wanted() == 2
    assert rest(scene).document["nodes"] == []


def test_an_agent_pool_is_raised_before_one_of_its_machines_is_deleted(
    scene: Scene, aks: FakeAgentPools
) -> None:
    pool = Pool("np")
    names = tuple(aks.pool("np", 2))

    def come(name: str) -> None:
        assert name == scene.node(2, pool)

    def go(name: str) -> None:
        scene.api.delete("nodes", name)

    aks.deleted, aks.added = go, come
    assert names == tuple(scene.node(instance, pool) for instance in range(2))
    scene.workload("web", names[0])
    scene.condition_tells(names[0], "Redeploy")
    aks.takes = 1

    report = rest(scene)
    assert scene.pods_on(names[0]) == []
    assert len(nodes(scene)) == 3
    for _ in range(6):
        if names[0] not in nodes(scene):
            break
        report = rest(scene)
    assert nodes(scene) == [names[1], pool.node_name(2)]
    assert aks.count() == 2
    report = wait_for("a pass with nothing to do", lambda: rest(scene))
    assert report.document["nodes"] == []
