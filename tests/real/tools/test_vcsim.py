"""The hosts of a vCenter that govmomi simulates: their names, their maintenance, and a node that follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.features.esx.power_client import PowerClient, for_source
from reconciler.features.esx.source import HOST
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.histories import small_world
from tests.support.builders import minutes
from tests.support.tools.vcsim import RunningVCenter

pytestmark = pytest.mark.tools

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
