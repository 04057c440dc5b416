"""A node goes off with its host and comes back with it; whoever intervenes is respected."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.features.esx.feature import AGAIN
from reconciler.features.esx.settings import INITIATED, LABEL, VERSION
from reconciler.features.esx.source import REBOOT_OK, HostState
from reconciler.features.esx.vm import OFF, ON, POWER_OFF, POWER_ON, SHUT_DOWN, Power, power_of
from reconciler.model.node import Node
from reconciler.model.values import replace
from reconciler.run import run_pass
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.world import World
from tests.features.esx.vcenter import POWER, FakeVCenter, chosen, esx_world, run, uuid
from tests.laws.histories import patches
from tests.support.builders import minutes
from tests.support.searching import kills

SETTINGS = chosen()
ENTERS, IDLE = HostState(entering=True, version="8.0.1"), HostState(version="8.0.1")
SHUT, CUT, START = SHUT_DOWN, POWER_OFF, POWER_ON
RECORD = "node-maintenance.dev/record"


def single(*, tools: bool = True) -> tuple[World, FakeVCenter]:
    """A world in which only n0 is a node of the host."""
    world, there = esx_world(tools=tools)
    for name in ("n1", "n2"):
        world.cluster.label(name, REBOOT_OK, None)
        del there.vms_by_name[name]
    return world, there


def n0(world: World) -> Node:
    return world.cluster.nodes["n0"]


def is_off(there: FakeVCenter, name: str = "n0") -> bool:
    return there.vms_by_name[name].state == OFF


def back(world: World) -> bool:
    """Whether every node is in service, with nothing left on it."""
    return all(
        not node.unschedulable and node.ready and not {INITIATED, POWER, RECORD} & set(node.annotations)
        for node in world.cluster.nodes.values()
    )


def holds(world: World, settings: Settings = SETTINGS) -> str:
    plan, _ = run_pass(world.outside, settings, world.now)
    found = (hold for each in plan.nodes if each.node == "n0" for hold in each.holds)
    return "; ".join(hold.reason for hold in found if hold.code == "vmPower")


def off(world: World, there: FakeVCenter) -> None:
    """Let the host enter maintenance, until its node is off and that is on record."""
    there.host = ENTERS
    run(world, SETTINGS, lambda: there.host.maintenance)
    run(world, SETTINGS, most=timedelta(seconds=20))
    power = power_of(n0(world).annotations[POWER])
    assert power is not None
    assert power.off is not None


# Labels.


def test_every_node_of_a_host_has_its_state_and_version_as_labels() -> None:
    world, there = esx_world(willing=False)

    def labels() -> set[tuple[str | None, str | None]]:
        run(world, SETTINGS, most=timedelta(seconds=20))
        return {(node.labels.get(LABEL), node.labels.get(VERSION)) for node in world.cluster.nodes.values()}

    assert labels() == {("false", "8.0.1")}
    there.host = replace(ENTERS, version="8.0.1 (build)")
    assert labels() == {("true", "8.0.1")}
    there.host = HostState(maintenance=True, alarms=("Host memory usage",), version="8.0.2")
    assert labels() == {("alarm", "8.0.2")}
    there.problem = "it is away"
    assert labels() == {("alarm", "8.0.2")}


# The whole.


def test_the_nodes_of_a_host_go_off_with_it_and_come_back_with_it() -> None:
    world, there = esx_world()
    run(world, SETTINGS, most=minutes(1))
    assert there.requests == []
    assert back(world)

    there.host = ENTERS
    run(world, SETTINGS, lambda: there.host.maintenance)
    run(world, SETTINGS, most=minutes(30))
    assert sorted(there.requests) == [(f"n{number}", SHUT) for number in range(3)]
    assert all(
        node.unschedulable and node.annotations[INITIATED] == "true" for node in world.cluster.nodes.values()
    )

    there.host = IDLE
    run(world, SETTINGS, lambda: back(world))
    run(world, SETTINGS, most=minutes(10))
    assert sorted(there.requests[3:]) == [(f"n{number}", START) for number in range(3)]
    assert back(world)


def test_nodes_wait_for_a_place_in_the_budget() -> None:
    world, there = esx_world()
    settings = chosen(budget="2")
    there.host = ENTERS

    run(world, settings, most=minutes(30))

    assert len(there.requests) == 2
    assert sum(node.unschedulable for node in world.cluster.nodes.values()) == 2


def test_the_annotation_comes_with_the_cordon_and_the_shutdown_after_the_drain() -> None:
    world, there = single()
    there.host = ENTERS
    run(world, SETTINGS, lambda: n0(world).unschedulable)

    assert n0(world).annotations[INITIATED] == "true"
    assert there.requests == []
    run(world, SETTINGS, lambda: bool(there.requests))
    assert there.requests == [("n0", SHUT)]


@pytest.mark.parametrize("alarms", [(), ("Host memory usage",)])
def test_an_alarm_drains_without_grace(alarms: tuple[str, ...]) -> None:
    world, there = single()
    there.host = HostState(entering=not alarms, alarms=alarms)
    graces: list[int | None] = []

    def ordered() -> bool:
        plan, _ = run_pass(world.outside, SETTINGS, world.now)
        graces.extend(
            each.todo.drain.options.grace.seconds for each in plan.nodes if each.todo.drain is not None
        )
        return bool(there.requests)

    run(world, SETTINGS, ordered)
    assert set(graces) == {0 if alarms else None}
    assert there.requests == [("n0", SHUT)]


def test_an_alarm_takes_no_grace_from_a_drain_for_something_else() -> None:
    world, there = single()
    there.host = HostState(alarms=("Host memory usage",))
    world.cluster.annotate("n1", "node-maintenance.dev/request", '{"kind": "Reboot"}')

    graces: dict[str, int | None] = {}

    def ordered() -> bool:
        plan, _ = run_pass(world.outside, SETTINGS, world.now)
        orders = (each.todo.drain for each in plan.nodes if each.todo.drain is not None)
        graces.update({order.node: order.options.grace.seconds for order in orders})
        return len(graces) == 2

    run(world, SETTINGS, ordered)
    assert graces == {"n0": 0, "n1": None}


def test_nothing_more_is_written_on_a_node_that_is_off() -> None:
    world, there = single()
    off(world, there)
    run(world, SETTINGS, most=minutes(2))
    before = len(patches(world.api))
    run(world, SETTINGS, most=minutes(10))

    assert len(patches(world.api)) == before


# Shutting down.


def test_a_guest_that_does_not_shut_down_is_powered_off_after_its_time() -> None:
    world, there = single()
    there.host, there.takes = ENTERS, None
    run(world, SETTINGS, lambda: bool(there.requests))
    began = world.now

    run(world, SETTINGS, lambda: is_off(there))

    assert timedelta(minutes=1, seconds=55) <= world.now - began <= timedelta(minutes=2, seconds=10)
    assert {action for _, action in there.requests[:-1]} == {SHUT}
    assert len(there.requests) <= 2 + minutes(2) // AGAIN
    assert there.requests[-1] == ("n0", CUT)


def test_without_guest_tools_the_vm_is_powered_off() -> None:
    world, there = single(tools=False)
    there.host = ENTERS
    run(world, SETTINGS, lambda: is_off(there))

    assert there.requests == [("n0", CUT)]


def test_a_vm_that_somebody_else_powered_off_is_left_alone() -> None:
    world, there = single()
    there.switch("n0", OFF)
    there.host = ENTERS
    run(world, SETTINGS, most=minutes(10))
    there.host = IDLE
    run(world, SETTINGS, most=minutes(10))

    assert INITIATED not in n0(world).annotations
    assert there.requests == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"uuid": uuid(7)}, f"reports the UUID {uuid(0)}, and the VM of its name has {uuid(7)}"),
        pytest.param({"name": "other"}, f"reports the UUID {uuid(0)}, which the VM other has"),
    ],
)
def test_a_vm_that_is_not_the_node_is_never_switched(change: dict[str, str], said: str) -> None:
    world, there = single()
    there.vms_by_name["n0"] = replace(there.vms_by_name["n0"], **change)  # type: ignore[arg-type]
    there.host = ENTERS
    run(world, SETTINGS, most=minutes(10))

    assert there.requests == []
    assert said in holds(world)


def test_a_node_without_the_label_is_neither_drained_nor_switched() -> None:
    world, there = esx_world(willing=False)
    there.host = ENTERS
    run(world, SETTINGS, most=minutes(10))

    assert there.requests == []
    assert back(world)


def test_a_post_drain_hook_is_waited_for() -> None:
    world, there = single()
    key = "node-maintenance.dev/post-drain.backup"
    world.cluster.annotate("n0", key, "me")
    there.host = ENTERS
    run(world, SETTINGS, most=minutes(8))
    assert there.requests == []

    world.cluster.annotate("n0", key, None)
    run(world, SETTINGS, lambda: is_off(there))


def test_a_host_that_enters_maintenance_again_takes_its_nodes_along() -> None:
    world, there = single()
    off(world, there)
    # Longer than a guest has to shut down.
    run(world, SETTINGS, most=minutes(3))
    there.host = IDLE
    run(world, SETTINGS, lambda: not is_off(there))
    # Its kubelet does not answer yet.
    world.cluster.node_down("n0")
    there.host = ENTERS
    run(world, SETTINGS, lambda: there.host.maintenance)

    there.host = IDLE
    run(world, SETTINGS, lambda: back(world))
    assert there.requests == [("n0", SHUT), ("n0", START)] * 2


# What people do meanwhile.


def test_a_vm_that_a_person_switches_on_again_stays_on_and_that_is_said_once() -> None:
    world, there = single()
    off(world, there)
    there.switch("n0", ON)
    told: list[str] = []
    for _ in range(5):
        plan, _ = run_pass(world.outside, SETTINGS, world.now)
        told += [notice.reason for each in plan.nodes for notice in each.todo.notices]
        world.advance(timedelta(seconds=30))

    assert there.requests == [("n0", SHUT)]
    assert told == ["MaintenancePower"]
    assert "somebody switched its VM on" in holds(world)
    there.host = IDLE
    run(world, SETTINGS, lambda: back(world))


def test_a_node_that_a_person_uncordons_before_its_shutdown_is_left_alone() -> None:
    world, there = single()
    there.host = ENTERS
    run(world, SETTINGS, lambda: n0(world).unschedulable)
    world.cluster.cordon("n0", on=False)
    run(world, SETTINGS, most=minutes(10))

    assert there.requests == []
    assert INITIATED not in n0(world).annotations
    assert not n0(world).unschedulable


def test_a_node_that_a_person_uncordons_while_its_vm_is_off_still_comes_back() -> None:
    world, there = single()
    off(world, there)
    world.cluster.cordon("n0", on=False)
    run(world, SETTINGS, most=minutes(5))
    assert there.requests == [("n0", SHUT)]

    there.host = IDLE
    run(world, SETTINGS, lambda: back(world))
    assert there.requests == [("n0", SHUT), ("n0", START)]


def test_the_record_may_be_gone_while_the_vm_is_off() -> None:
    world, there = single()
    off(world, there)
    world.cluster.annotate("n0", RECORD, None)
    run(world, SETTINGS, most=minutes(5))
    assert is_off(there)

    there.host = IDLE
    run(world, SETTINGS, lambda: not is_off(there))
    assert there.requests == [("n0", SHUT), ("n0", START)]


def test_an_annotation_that_a_person_removes_while_the_guest_shuts_down_is_not_written_again() -> None:
    world, there = single()
    there.host, there.takes = ENTERS, None
    run(world, SETTINGS, lambda: bool(there.requests))
    world.cluster.annotate("n0", INITIATED, None)
    run(world, SETTINGS, most=minutes(5))

    assert there.requests == [("n0", SHUT)]
    assert INITIATED not in n0(world).annotations
    assert "somebody removed the annotation" in holds(world)


def test_a_label_that_a_person_removes_while_the_vm_is_off_still_lets_it_come_back() -> None:
    world, there = single()
    off(world, there)
    world.cluster.label("n0", REBOOT_OK, None)
    run(world, SETTINGS, most=minutes(10))
    assert there.requests == [("n0", SHUT)]
    assert n0(world).unschedulable

    there.host = IDLE
    run(world, SETTINGS, lambda: back(world))


def test_without_the_annotation_a_vm_is_never_powered_on() -> None:
    world, there = single()
    off(world, there)
    world.cluster.annotate("n0", INITIATED, None)
    there.host = IDLE
    run(world, SETTINGS, most=minutes(20))

    assert there.requests == [("n0", SHUT)]
    assert "somebody removed the annotation" in holds(world)


def test_a_node_that_a_person_holds_now_is_not_switched() -> None:
    world, there = single()
    there.host, there.takes = ENTERS, None
    run(world, SETTINGS, lambda: bool(there.requests))
    world.cluster.annotate("n0", "node-maintenance.dev/hold", '{"by": "a", "now": true}')
    run(world, SETTINGS, most=minutes(5))

    assert there.requests == [("n0", SHUT)]


def test_a_node_that_a_person_holds_now_is_not_switched_on_either() -> None:
    world, there = single()
    off(world, there)
    world.cluster.annotate("n0", "node-maintenance.dev/hold", '{"by": "a", "now": true}')
    there.host = IDLE
    run(world, SETTINGS, most=minutes(2))

    assert there.requests == [("n0", SHUT)]


# vCenter.


def test_a_vcenter_that_can_not_be_asked_is_waited_for() -> None:
    world, there = single()
    off(world, there)
    there.problem = "it is away"
    there.host = IDLE
    run(world, SETTINGS, most=minutes(10))
    assert there.requests == [("n0", SHUT)]
    assert n0(world).unschedulable

    there.problem = ""
    run(world, SETTINGS, lambda: back(world))


def test_a_node_whose_vm_went_off_a_moment_ago_is_not_taken_for_ready() -> None:
    world, there = single()
    there.host = ENTERS
    run(world, SETTINGS, lambda: is_off(there))
    # Its kubelet was heard of a moment ago, and the host leaves maintenance again.
    world.cluster.node_up("n0", booted=False)
    there.vms_by_name["n0"] = replace(there.vms_by_name["n0"], state=OFF)
    there.host = IDLE
    run_pass(world.outside, SETTINGS, world.now)
    world.advance(timedelta(seconds=15))
    run_pass(world.outside, SETTINGS, world.now)

    assert n0(world).unschedulable


# From and to maintenance-controller.


def test_what_maintenance_controller_has_begun_goes_on_here() -> None:
    world, there = single()
    world.cluster.cordon("n0")
    world.cluster.annotate("n0", INITIATED, "true")
    there.host = ENTERS
    run(world, SETTINGS, lambda: is_off(there))

    there.host = IDLE
    run(world, SETTINGS, lambda: back(world))
    assert there.requests == [("n0", SHUT), ("n0", START)]


def test_what_maintenance_controller_has_switched_off_comes_back_here() -> None:
    world, there = single()
    world.cluster.cordon("n0")
    world.cluster.annotate("n0", INITIATED, "true")
    there.switch("n0", OFF)

    run(world, SETTINGS, lambda: back(world))
    assert there.requests == [("n0", START)]


def test_a_cordon_without_the_annotation_is_not_taken_off() -> None:
    world, there = single()
    world.cluster.cordon("n0")
    there.host = ENTERS
    run(world, SETTINGS, lambda: is_off(there))
    there.host = IDLE
    run(world, SETTINGS, lambda: INITIATED not in n0(world).annotations)
    run(world, SETTINGS, most=minutes(5))

    assert n0(world).unschedulable


def check_of_the_original(world: World, there: FakeVCenter) -> None:
    """Do once what the ESX controller does at each check, by its README."""
    world.cluster.label("n0", LABEL, there.host.label)
    node = n0(world)
    if there.host.label != "false" and node.labels.get(REBOOT_OK) == "true":
        world.cluster.annotate("n0", INITIATED, "true")
        world.cluster.cordon("n0")
        there.switch("n0", OFF)
    elif there.host.label == "false" and node.annotations.get(INITIATED) == "true":
        there.switch("n0", ON)
        world.cluster.cordon("n0", on=False)
        world.cluster.annotate("n0", INITIATED, None)


@pytest.mark.parametrize("seconds", range(0, 60, 10))
def test_what_has_begun_here_goes_on_there_and_here_again(seconds: int) -> None:
    world, there = single()
    there.host = ENTERS
    run(world, SETTINGS, lambda: INITIATED in n0(world).annotations)
    run(world, SETTINGS, most=timedelta(seconds=seconds))

    check_of_the_original(world, there)
    assert is_off(there)
    there.host = IDLE
    check_of_the_original(world, there)
    assert not is_off(there)
    assert not n0(world).unschedulable

    sent = list(there.requests)
    run(world, SETTINGS, lambda: back(world))
    assert there.requests == sent


# Killed.


def killed_at(kill: int) -> tuple[World, FakeVCenter]:
    """Run the whole with a process that dies at its write of this number."""
    world, there = single()
    writes = 0

    def hook(write: Call) -> None:
        nonlocal writes
        del write
        writes += 1
        if writes == kill:
            raise ProcessKilled

    world.api.after_write = hook
    there.host = ENTERS
    run(world, SETTINGS, lambda: there.host.maintenance)
    run(world, SETTINGS, most=minutes(2))
    there.host = IDLE
    run(world, SETTINGS, lambda: back(world))
    return world, there


@pytest.mark.parametrize("kill", kills(14))
def test_killed_after_any_write_it_ends_the_same(kill: int) -> None:
    _, there = killed_at(kill)

    assert there.log == ["n0 poweredOff", "n0 poweredOn"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", [1, 2])
def test_killed_at_any_call_it_ends_the_same(when: str, call: int) -> None:
    world, there = single()
    there.die = (when, call)
    there.host = ENTERS
    run(world, SETTINGS, lambda: there.host.maintenance)
    there.host = IDLE
    run(world, SETTINGS, lambda: back(world))

    assert there.log == ["n0 poweredOff", "n0 poweredOn"]


def test_what_cannot_be_read_counts_as_nothing_done() -> None:
    assert power_of("{") == Power()
    assert power_of(None) is None
