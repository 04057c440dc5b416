"""ESX hosts with nodes of the real API server, on the vCenter that govmomi simulates: off, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.esx.power_client import PowerClient
from reconciler.features.esx.settings import INITIATED, LABEL, SECTION, VERSION
from reconciler.features.esx.source import HOST, REBOOT_OK
from reconciler.features.esx.vm import OFF, ON
from tests.real.passes.scene import POOL, PREFIX, Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.tools.vcsim import RunningVCenter

pytestmark = pytest.mark.heavy

ESX = "DC0_H0"
NODES = [POOL.node_name(number) for number in range(3)]
ALARM = "Host memory usage"


@pytest.fixture
def scene(cluster: ControlPlane) -> Iterator[Scene]:
    made = Scene(cluster)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def vcenter(vcsim_program: Path, tmp_path: Path, scene: Scene) -> Iterator[RunningVCenter]:
    """A host with three nodes, and a node elsewhere; the passes know them."""
    with RunningVCenter(vcsim_program, tmp_path, entering="1h", machines=3) as running:
        for number, node in enumerate(NODES):
            uuid = running.rename(f"{ESX}_VM{number}", node)
            made = POOL.node(number, images=1, labels={HOST: ESX, REBOOT_OK: "true"})
            made["status"]["nodeInfo"]["systemUUID"] = uuid
            scene.api.create("nodes", made)
        scene.node(7)
        running.define_alarm(ALARM)
        scene.set(
            "esx: {enabled: true}\n"
            f"sources: {{esx: {{enabled: true, rebootOk: true, every: 10s, alarms: [{ALARM}],"
            f" vcenters: [{{url: '{running.url}', username: a, password: b}}]}}}}\n"
            "uncordon: {settle: 0s}\nbudget: {maxUnavailable: 3}\n"
        )
        section = SECTION.of(scene.settings).polled

        def clock() -> float:
            return scene.now.timestamp()

        scene.clients["vcenter"] = PowerClient(section, lambda: None, clock=clock)
        yield running


def go_on(scene: Scene, what: str, until: Callable[[], bool], *, killed: bool = False) -> None:
    """Run passes until something is so; with `killed` each is that of another process."""

    def ended() -> bool:
        scene.clock.advance(seconds=15)
        scene.finish()
        if killed:
            scene.new_process()
        return until()

    wait_for(what, ended, seconds=90)


def power(vcenter: RunningVCenter) -> set[str]:
    states = vcenter.power()
    return {states[node] for node in NODES}


def node(scene: Scene, name: str) -> dict[str, Any]:
    return dict(scene.api.get("nodes", name))


def is_back(scene: Scene, name: str) -> bool:
    annotations = node(scene, name)["metadata"]["annotations"]
    return scene.is_untouched(name) and not {INITIATED, f"{PREFIX}/power"} & set(annotations)


@pytest.mark.parametrize("killed", [False, True])
def test_the_nodes_of_a_host_go_off_with_it_and_come_back(
    scene: Scene, vcenter: RunningVCenter, killed: bool
) -> None:
    for number, name in enumerate(NODES):
        scene.workload(f"web-{number}", name)
    vcenter.enter(ESX)
    go_on(scene, "its maintenance", lambda: vcenter.is_in_maintenance(ESX), killed=killed)

    assert power(vcenter) == {OFF}
    go_on(scene, "the labels", lambda: node(scene, NODES[0])["metadata"]["labels"].get(LABEL) == "true")
    for name in NODES:
        # What the ESX controller would go on with.
        found = node(scene, name)
        assert found["spec"]["unschedulable"]
        assert found["metadata"]["annotations"][INITIATED] == "true"
        assert found["metadata"]["labels"][VERSION]
        assert scene.pods_on(name) == []
    assert not scene.cordoned(POOL.node_name(7))

    vcenter.maintenance(ESX, on=False)
    go_on(scene, "their return", lambda: all(is_back(scene, name) for name in NODES), killed=killed)
    assert power(vcenter) == {ON}
    assert node(scene, NODES[0])["metadata"]["labels"][LABEL] == "false"


def test_an_alarm_takes_the_nodes_out_until_it_ends(scene: Scene, vcenter: RunningVCenter) -> None:
    vcenter.alarm(ESX, ALARM)
    go_on(scene, "their end", lambda: power(vcenter) == {OFF})
    assert node(scene, NODES[0])["metadata"]["labels"][LABEL] == "alarm"

    vcenter.alarm(ESX, ALARM, on=False)
    go_on(scene, "their return", lambda: all(is_back(scene, name) for name in NODES))
    assert power(vcenter) == {ON}


def test_a_node_that_the_esx_controller_switched_off_comes_back(
    scene: Scene, vcenter: RunningVCenter
) -> None:
    theirs, by_hand = NODES[:2]
    for name, begun in ((theirs, {INITIATED: "true"}), (by_hand, {})):
        patch = {"metadata": {"annotations": begun}, "spec": {"unschedulable": True}}
        scene.api.patch("nodes", name, patch)
        vcenter.power_off(name)

    go_on(scene, "its return", lambda: is_back(scene, theirs))

    states = vcenter.power()
    assert (states[theirs], states[by_hand]) == (ON, OFF)
    assert scene.cordoned(by_hand)


def test_a_vm_of_another_uuid_is_not_switched(scene: Scene, vcenter: RunningVCenter) -> None:
    scene.api.delete("nodes", NODES[0])
    made = POOL.node(0, images=1, labels={HOST: ESX, REBOOT_OK: "true"})
    made["status"]["nodeInfo"]["systemUUID"] = "11111111-2222-3333-4444-555555555555"
    scene.api.create("nodes", made)
    vcenter.enter(ESX)
    go_on(scene, "the end of others", lambda: vcenter.power()[NODES[1]] == vcenter.power()[NODES[2]] == OFF)

    assert vcenter.power()[NODES[0]] == ON
    assert "11111111-2222-3333-4444-555555555555" in scene.run().holds(NODES[0])["vmPower"]
