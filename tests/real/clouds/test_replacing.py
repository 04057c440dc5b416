"""Whole passes on the real API server: machines of four providers are replaced, nodes drained first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.features.machines import cluster_api, karpenter, openshift
from reconciler.features.machines.agent_pools import AgentPools
from reconciler.features.machines.providers import CLIENTS
from tests.real.passes.processes import Programs
from tests.real.passes.scene import PassReport, Scene
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.machines import MachineWorld, machine_name
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import daemon_set
from tests.support.fakes import agent_pools
from tests.support.fakes.agent_pools import FakeAgentPools
from tests.support.fakes.arm import Refusal
from tests.support.replacing import all_machines

REPLACES = "budget: {maxUnavailable: 1}\nevents: {Redeploy: {replace: true}}\n"
SURGES = REPLACES + "replace: {surge: true}\n"
TOMORROW = 24 * 60


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
            scene.connection,
            guard=lambda: None,
            clients={**CLIENTS, "AKS": lambda _: pools},
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


@pytest.mark.parametrize("provider", [cluster_api.NAME, openshift.NAME])
def test_a_machine_set_s_node_is_drained_and_its_machine_replaced(
    scene: Scene, world: MachineWorld, provider: str
) -> None:
    world.make(["one", "two"], provider=provider)
    scene.workload("web", "one")
    scene.condition_tells("one", "Redeploy")
    report = rest(scene)

    assert scene.pods_on("one") == []
    assert scene.cordoned("one")
    assert "being deleted" in report.holds("one")["machineStays"]
    world.settle()
    assert "one" not in nodes(scene)
    assert len(nodes(scene)) == 2
    assert world.wanted(provider=provider) == 2
    assert rest(scene).document["nodes"] == []


def test_karpenter_s_claim_is_deleted_once_the_node_is_drained(scene: Scene, world: MachineWorld) -> None:
    world.make(["one", "two"], provider=karpenter.NAME, pool="spot")
    scene.workload("web", "one")
    scene.condition_tells("one", "Redeploy")
    rest(scene)
    assert scene.pods_on("one") == []
    world.settle()

    assert nodes(scene) == ["two"]
    assert rest(scene).document["budget"]["holders"] == [
        {"node": "one", "because": "replaced by us; the new node is missing"}
    ]


@pytest.mark.parametrize(
    "way_out", ["the pod may be disrupted", "the claim has a terminationGracePeriod"], ids=["pod", "claim"]
)
def test_a_claim_whose_deletion_karpenter_would_not_finish_is_not_deleted(
    scene: Scene, world: MachineWorld, way_out: str
) -> None:
    world.make(["one", "two"], provider=karpenter.NAME, pool="spot")
    daemon = daemon_set("logs")
    template = daemon["spec"]["template"]
    template["spec"]["tolerations"] = []
    template["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    scene.api.create("daemonsets", daemon)
    wait_for("the DaemonSet's pods", lambda: scene.ready("logs", 2))
    scene.condition_tells("one", "Redeploy")
    report = rest(scene)
    held = world.machine(machine_name("one"), karpenter.NAME)

    assert "has karpenter.sh/do-not-disrupt" in report.holds("one")["replaceDue"]
    assert "has no terminationGracePeriod" in report.holds("one")["replaceDue"]
    assert held is not None
    assert "deletionTimestamp" not in held["metadata"]
    if "pod" in way_out:
        (pod,) = [each for each in scene.api.list("pods") if each["spec"]["nodeName"] == "one"]
        without = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": None}}}
        scene.api.patch("pods", pod["metadata"]["name"], without, namespace="default")
    else:
        grace = {"spec": {"terminationGracePeriod": "1h"}}
        world.patch(karpenter.NAME, "nodeclaims", machine_name("one"), grace)
    rest(scene)
    world.settle()
    assert nodes(scene) == ["two"]


@pytest.mark.parametrize("provider", [cluster_api.NAME, openshift.NAME])
def test_with_surge_the_new_node_is_ready_first_and_the_pool_ends_as_it_began(
    scene: Scene, world: MachineWorld, provider: str
) -> None:
    scene.set(SURGES)
    world.make(["one", "two"], provider=provider)
    scene.workload("web", "one")
    scene.condition_tells("one", "Redeploy", minutes=TOMORROW)
    report = rest(scene)
    assert "3 machines Ready before the drain" in report.holds("one")["replacementReady"]
    assert not scene.cordoned("one")
    assert world.wanted(provider=provider) == 3

    world.ready = False
    world.settle()
    rest(scene)
    assert not scene.cordoned("one")

    (new,) = set(nodes(scene)) - {"one", "two"}
    world.get_ready(new)
    world.settle()
    rest(scene)
    assert scene.cordoned("one")
    assert scene.pods_on("one") == []
    world.settle()
    assert nodes(scene) == sorted([new, "two"])
    assert world.wanted(provider=provider) == 2
    assert rest(scene).document["budget"]["holders"] == []


def test_a_control_plane_s_node_is_drained_and_only_reported(scene: Scene, world: MachineWorld) -> None:
    world.make(["master"], control_plane=True, pool="masters")
    world.make(["one", "two"])
    scene.condition_tells("master", "Redeploy")
    report = rest(scene)

    assert "never replaced" in report.holds("master")["replaceDue"]
    world.settle()
    assert "master" in nodes(scene)


def test_without_its_kinds_and_without_rights_the_pass_goes_on_and_says_so(scene: Scene) -> None:
    scene.api.create_namespace("node-maintenance")
    scene.set(REPLACES)
    scene.machines = all_machines(scene.connection, guard=lambda: None)
    node = scene.node()
    report = {"machine.openshift.io/machine": "machines/m-one"}
    scene.api.patch("nodes", node, {"metadata": {"annotations": report}})
    scene.condition_tells(node, "Redeploy")

    assert "it can't be replaced" in rest(scene).holds(node)["replaceDue"]


def test_the_second_node_waits_until_the_first_one_s_replacement_is_there(
    scene: Scene, world: MachineWorld
) -> None:
    world.make(["one", "two", "three"])
    scene.condition_tells("one", "Redeploy")
    rest(scene)
    scene.condition_tells("two", "Redeploy")
    world.ready = False
    world.settle()
    (new,) = set(nodes(scene)) - {"two", "three"}
    # One that is there and not Ready holds the place itself.
    scene.condition(new, "Ready", "False")
    assert f"{new} (NotReady)" in rest(scene).holds("two")["budgetLeft"]

    world.get_ready(new)
    assert "cordon" in scene.run().actions("two")


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


def test_with_surge_an_agent_pool_has_the_new_machine_before_the_old_node_is_drained(
    scene: Scene, aks: FakeAgentPools
) -> None:
    pool = Pool("np")
    old, other = aks.pool("np", 2)
    scene.set(SURGES)
    for instance in range(2):
        scene.node(instance, pool)
    cordoned_when_it_came = []

    def come(name: str) -> None:
        cordoned_when_it_came.append(scene.cordoned(old))
        assert name == scene.node(2, pool)

    def go(name: str) -> None:
        assert scene.cordoned(name)
        assert scene.pods_on(name) == []
        scene.api.delete("nodes", name)

    aks.added, aks.deleted = come, go
    scene.workload("web", old)
    scene.condition_tells(old, "Redeploy", minutes=TOMORROW)
    for _ in range(6):
        rest(scene)
        if old not in nodes(scene):
            break

    assert cordoned_when_it_came == [False]
    assert nodes(scene) == [other, pool.node_name(2)]
    assert aks.count() == 2


def test_an_agent_pool_that_refuses_is_reported_and_tried_again(scene: Scene, aks: FakeAgentPools) -> None:
    names = aks.pool("np", 1)
    scene.node(0, Pool("np"))
    scene.condition_tells(names[0], "Redeploy")
    aks.refuse(Refusal(403, "AuthorizationFailed"), "PUT ")
    outcomes = []
    for _ in range(5):
        outcomes += scene.finish().document["outcomes"]

    (failed,) = [one for one in outcomes if one["action"] == "raise pool"]
    assert failed["result"] == "failed"
    assert "403" in failed["detail"]
    scene.clock.advance(minutes=2)
    scene.condition_tells(names[0], "Redeploy")
    rest(scene)
    assert [one.partition(" ")[0] for one in aks.writes] == ["PUT", "PUT", "POST"]


@pytest.mark.slow
def test_sweep_replaces_a_machine_over_processes(
    scene: Scene, world: MachineWorld, programs: Programs
) -> None:
    world.make(["one", "two"])
    scene.workload("web", "one")
    scene.condition_tells("one", "Redeploy")
    programs.configure(f"mode: Enforce\n{REPLACES}")
    done = [programs.sweep() for _ in range(3)]

    assert [one.code for one in done] == [0, 0, 0]
    actions = [action for one in done for action in one.node("one").get("actions", [])]
    assert actions.count("replace machine") <= 1
    assert "replace machine" in {report["action"] for one in done for report in one.document["outcomes"]}
    world.settle()
    assert "one" not in nodes(scene)
    assert programs.sweep().document["nodes"] == []
