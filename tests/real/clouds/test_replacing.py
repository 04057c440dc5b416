"""Whole passes on the real API server: machines of four providers are replaced, nodes drained first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from reconciler.features.machines.agent_pools import AgentPools
from reconciler.features.machines.process import CLIENTS
from reconciler.model.machine import CLUSTER_API
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import CONTROL_PLANE_LABELS
from tests.features.machines import fake_agent_pools as agent_pools
from tests.features.machines.all_providers import all_machines
from tests.features.machines.fake_agent_pools import FakeAgentPools
from tests.real.passes.processes import Programs
from tests.real.passes.scene import PassReport, Scene
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.machines import MachineWorld
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.webhooks import in_force

IN_NINE_DAYS = timedelta(days=9)
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


def ask(scene: Scene, node: str, kind: str, within: timedelta) -> None:
    """Request maintenance that begins so much later."""
    scene.annotate(node, "request", json.dumps({"kind": kind, "notBefore": to_text(scene.now + within)}))


def nodes(scene: Scene) -> list[str]:
    return sorted(str(one["metadata"]["name"]) for one in scene.api.list("nodes"))


def test_a_machine_set_s_node_is_drained_and_its_machine_replaced(scene: Scene, world: MachineWorld) -> None:
    world.make(["one", "two"])
    scene.workload("web", "one")
    scene.condition_tells("one", "Redeploy")
    report = rest(scene)

    assert scene.pods_on("one") == []
    assert scene.cordoned("one")
    assert "being deleted" in report.holds("one")["offerAnswered"]
    world.settle()
    assert "one" not in nodes(scene)
    assert len(nodes(scene)) == 2
    assert world.wanted() == 2
    assert rest(scene).document["nodes"] == []


@pytest.mark.parametrize(
    ("machine", "because"),
    [
        ("control plane", "control-plane nodes are never replaced"),
        ("no provider", "replace.aks.cluster does not say which managed cluster this is"),
    ],
)
def test_what_only_the_platform_can_end_starts_late_and_leaves_the_place_to_a_node_with_a_date(
    scene: Scene, world: MachineWorld, programs: Programs, machine: str, because: str
) -> None:
    programs.configure(f"mode: Enforce\n{REPLACES}")
    late, due = "one", scene.node(7)
    if machine == "no provider":
        late = scene.node(6)
    else:
        world.make([late])
        scene.api.patch("nodes", late, {"metadata": {"labels": {CONTROL_PLANE_LABELS[0]: ""}}})
    scene.workload("web", late)
    ask(scene, late, "Redeploy", IN_NINE_DAYS)
    assert programs.sweep().code == 0
    ask(scene, due, "Reboot", timedelta(minutes=17))
    assert programs.sweep().code == 0

    assert scene.cordoned(due)
    assert not scene.cordoned(late)
    assert scene.pods_on(late) == ["web"]
    cases = programs.run("plan", "--until", "14d", "--output", "json").document["cases"]
    (schedule,) = [case["schedule"] for case in cases if case["name"] == late]
    assert schedule["ending"].startswith("only the platform ends it: ")
    assert because in schedule["ending"]
    latest, planned, back = (from_text(schedule[key]) for key in ("latestStart", "plannedStart", "ends"))
    assert planned == latest - timedelta(hours=1)
    assert back > latest
    assert because in " ".join(programs.run("plan", "--until", "14d").out.split())
    said = programs.run("check-config", str(programs.config)).out
    assert "It starts early where it can be replaced, else late like other events." in said


def test_a_provider_that_refuses_is_given_up_and_the_place_goes_to_a_node_with_a_date(
    scene: Scene, world: MachineWorld
) -> None:
    world.make(["one", "two"])
    ask(scene, "one", "Redeploy", IN_NINE_DAYS)
    rule = {
        "apiGroups": ["cluster.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["DELETE"],
        "resources": ["machines"],
    }
    policy = {
        "metadata": {"name": "machines-stay"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "machines stay"}],
        },
    }
    binding = {
        "metadata": {"name": "machines-stay"},
        "spec": {"policyName": "machines-stay", "validationActions": ["Deny"]},
    }

    def denied() -> bool:
        try:
            world.api.request("DELETE", f"{world.path(CLUSTER_API, 'machines', 'm-two')}?dryRun=All")
        except ApiError as error:
            return "machines stay" in str(error)
        return False

    with in_force(scene.api, policy, binding, denied):
        report = rest(scene)
        assert scene.cordoned("one")
        for _ in range(40):
            if not scene.cordoned("one"):
                break
            scene.clock.advance(minutes=10)
            report = rest(scene)

    assert not scene.cordoned("one")
    assert "only the platform ends it: " in report.node("one")["schedule"]["ending"]
    ask(scene, "two", "Reboot", timedelta(minutes=17))
    rest(scene)
    assert scene.cordoned("two")
    assert not scene.cordoned("one")


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
