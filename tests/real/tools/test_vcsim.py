"""The hosts of a vCenter that govmomi simulates: their names, their maintenance, and a node that follows."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reconciler.features.esx.power_client import PowerClient, for_source
from reconciler.features.esx.settings import SECTION
from reconciler.features.esx.source import HOST
from reconciler.features.esx.vm import OFF, ON, POWER_OFF, POWER_ON, SHUT_DOWN, Named, Switch
from reconciler.model.errors import CloudError, LockLost
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.histories import small_world
from tests.support.builders import minutes
from tests.support.controlplane.processes import wait_for
from tests.support.tools.vcsim import RunningVCenter

HOSTS = frozenset({"dc0_h0", "dc0_c0_h0", "dc0_c0_h1", "dc0_c0_h2"})


@pytest.fixture
def vcenter(vcsim_program: Path, tmp_path: Path) -> Iterator[RunningVCenter]:
    with RunningVCenter(vcsim_program, tmp_path) as running:
        yield running


def chosen(vcenter: RunningVCenter, *, password: str = "secret", alarms: str = "") -> Settings:
    server = f"{{url: '{vcenter.url}', username: reader, password: '{password}'}}"
    text = f"mode: Enforce\nsources: {{esx: {{enabled: true, vcenters: [{server}], alarms: [{alarms}]}}}}"
    return parse_settings(f"{text}\nuncordon: {{settle: 0s}}\nbudget: {{maxUnavailable: 100%}}", "f")


def client(settings: Settings) -> PowerClient:
    return for_source(settings, None)


def cordoned(world: World, settings: Settings) -> list[str]:
    """Return the nodes that are cordoned after two passes; vCenter is asked again each time."""
    for _ in range(2):
        run_pass(world.outside, settings, world.now)
        world.advance(minutes(6))
    return [name for name, node in sorted(world.cluster.nodes.items()) if node.unschedulable]


def test_every_host_is_listed_and_those_in_maintenance_are_named(
    vcenter: RunningVCenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before,) = client(chosen(vcenter)).ask(["a"])
    vcenter.maintenance("DC0_C0_H1")
    # Two of four hosts on a page: the list goes on.
    monkeypatch.setattr("reconciler.features.esx.client.PAGE", 2)
    (after,) = client(chosen(vcenter, alarms="Host memory usage")).ask(["a"])

    assert (before.problem, before.seen) == ("", HOSTS)
    assert {(name, state.label, bool(state.version)) for name, state in before.found} == {
        (name, "false", True) for name in HOSTS
    }
    assert (after.problem, after.seen) == ("", HOSTS)
    assert [name for name, state in after.found if state.maintenance] == ["dc0_c0_h1"]


def test_the_alarms_of_the_settings_are_named_while_they_are_triggered(vcenter: RunningVCenter) -> None:
    settings = chosen(vcenter, alarms="Host memory usage")

    def alarms() -> list[tuple[str, tuple[str, ...]]]:
        (answer,) = client(settings).ask(["a"])
        assert answer.problem == ""
        return [(name, state.alarms) for name, state in answer.found if state.alarms]

    for name in ("Host memory usage", "Network redundancy"):
        vcenter.define_alarm(name)
        vcenter.alarm("DC0_C0_H1", name)
    vcenter.alarm("DC0_C0_H2", "Network redundancy")
    assert alarms() == [("dc0_c0_h1", ("Host memory usage",))]
    vcenter.alarm("DC0_C0_H1", "Host memory usage", on=False)
    assert alarms() == []


def test_a_refused_login_is_a_problem(vcenter: RunningVCenter) -> None:
    (found,) = client(chosen(vcenter, password="${file:/dev/null}")).ask(["a"])

    assert found.seen == frozenset()
    assert found.problem.startswith(f"{vcenter.url} can't be asked: ")


def test_a_node_is_drained_while_vcenter_waits_for_its_vm(vcsim_program: Path, tmp_path: Path) -> None:
    with RunningVCenter(vcsim_program, tmp_path, entering="1h") as vcenter:
        settings = chosen(vcenter)
        world = small_world()
        world.cluster.label("n0", HOST, "DC0_H0")
        world.clients = {"vcenter": client(settings)}

        assert cordoned(world, settings) == []
        with vcenter.enters_maintenance("DC0_H0"):
            assert cordoned(world, settings) == ["n0"]
        # The cancelled task is still in the list of recent tasks.
        assert cordoned(world, settings) == []


def switcher(vcenter: RunningVCenter, guard: Callable[[], None] = lambda: None) -> PowerClient:
    return PowerClient(SECTION.of(chosen(vcenter)).polled, guard)


def test_the_vms_of_nodes_are_found_and_switched(vcsim_program: Path, tmp_path: Path) -> None:
    with RunningVCenter(vcsim_program, tmp_path) as vcenter:
        uuid = vcenter.rename("DC0_H0_VM0", "n0")
        asked, client = Named("n0", "a", uuid), switcher(vcenter)
        found = client.vms([asked, Named("dc0_h0_vm1", "a"), Named("n0", "b", "4203-no")])
        vm = found["dc0_h0_vm1"].vm
        assert vm is not None
        assert (vm.name, vm.state, vm.tools) == ("DC0_H0_VM1", ON, True)
        assert "and the VM of its name has" in found["n0"].problem

        vm = client.vms([asked])["n0"].vm
        assert vm is not None
        client.perform(Switch(asked, vm.id, SHUT_DOWN))
        wait_for("its end", lambda: vcenter.power()["n0"] == OFF)
        # What a killed process has asked for before does no harm.
        client.perform(Switch(asked, vm.id, SHUT_DOWN))
        client.perform(Switch(asked, vm.id, POWER_OFF))
        client.perform(Switch(asked, vm.id, POWER_ON))
        wait_for("its start", lambda: vcenter.power()["n0"] == ON)
        client.perform(Switch(asked, vm.id, POWER_OFF))
        wait_for("its end", lambda: vcenter.power()["n0"] == OFF)


def test_a_vm_of_another_node_is_not_switched_whatever_was_read_before(
    vcsim_program: Path, tmp_path: Path
) -> None:
    with RunningVCenter(vcsim_program, tmp_path) as vcenter:
        uuid, client = vcenter.rename("DC0_H0_VM0", "n0"), switcher(vcenter)
        vm = client.vms([Named("n0", "a", uuid)])["n0"].vm
        assert vm is not None
        vcenter.rename("n0", "n1")

        for action in (SHUT_DOWN, POWER_OFF):
            with pytest.raises(CloudError, match=f"reports the UUID {uuid}, which the VM n1 has"):
                client.perform(Switch(Named("n0", "a", uuid), vm.id, action))
        assert vcenter.power()["n1"] == ON


def test_without_the_lock_nothing_is_switched(vcsim_program: Path, tmp_path: Path) -> None:
    with RunningVCenter(vcsim_program, tmp_path) as vcenter:
        uuid = vcenter.rename("DC0_H0_VM0", "n0")
        named = Named("n0", "a", uuid)
        vm = switcher(vcenter).vms([named])["n0"].vm
        assert vm is not None
        left = [None]

        def guard() -> None:
            # The lock is lost between the beginning and the switch.
            if not left:
                raise LockLost("it is lost")
            left.pop()

        with pytest.raises(LockLost):
            switcher(vcenter, guard).perform(Switch(named, vm.id, POWER_OFF))
        with pytest.raises(CloudError, match="not switched by this process"):
            for_source(chosen(vcenter), None).perform(Switch(named, vm.id, POWER_OFF))
        assert vcenter.power()["n0"] == ON


def asked(silent: socket.socket) -> int:
    """Close the connections that a server has got, and return how many they were."""
    silent.setblocking(False)
    connections = 0
    with suppress(BlockingIOError):
        while True:
            silent.accept()[0].close()
            connections += 1
    return connections


def test_a_vcenter_that_hangs_keeps_only_its_own_zone_waiting(
    vcsim_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.features.esx.power_client.PATIENCE", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, RunningVCenter(vcsim_program, tmp_path) as vcenter:
        uuid = vcenter.rename("DC0_H0_VM0", "n0")
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        servers = f"[{{zone: a, url: '{vcenter.url}', username: a, password: b}},"
        servers += f" {{zone: b, url: '{url}', username: a, password: b}}]"
        settings = parse_settings(f"sources: {{esx: {{enabled: true, vcenters: {servers}}}}}", "f")
        client = PowerClient(SECTION.of(settings).polled)
        nodes = [Named("n0", "a", uuid), Named("n1", "b")]
        found = client.vms(nodes)

        assert found["n0"].vm is not None
        assert found["n1"].problem.startswith(f"{url} can't be asked")
        assert asked(silent)
        # It is not asked again before a pause.
        client.vms(nodes)
        assert not asked(silent)
