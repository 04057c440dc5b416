"""examples/machine-maintenance.yaml does what the README of machine-maintenance-operator says.

Its section "What it does" (github.com/dofinn/machine-maintenance-operator): it asks AWS about each instance
"for scheduled events every 60 minutes", "is deleting the target machines `machine` CR", and the machine API
"creates new node to satisfy machinesets". Its section "What it could do" has times without
maintenance, waiting for another maintenance, and "different terminations for worker/infra vs master nodes".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from reconciler.model.machine import Remove
from reconciler.model.node import CONTROL_PLANE_LABELS
from reconciler.model.polling import Listing
from reconciler.model.values import replace
from reconciler.simulation.machines import SimulatedMachines
from reconciler.simulation.world import World
from reconciler.sources.aws.source import InstanceEvent
from tests.examples.playing import example, play
from tests.support import builders
from tests.support.worlds import in_pool, world_of

SETTINGS = example("machine-maintenance")
REGION = "eu-west-1"
CODES = ["instance-stop", "instance-reboot", "system-reboot", "instance-retirement", "system-maintenance"]


@dataclass
class FakeEc2:
    """Answers the list of instances with events, as DescribeInstanceStatus does."""

    events: dict[str, InstanceEvent] = field(default_factory=dict)
    asked: int = 0

    def ask(self, scopes: Sequence[str]) -> tuple[Listing[str, InstanceEvent], ...]:
        self.asked += len(scopes)
        return tuple(Listing(scope, tuple(self.events.items())) for scope in scopes)


def _instance(number: int) -> str:
    return f"i-{number:017x}"


def _fleet(start: datetime = builders.NOW) -> tuple[World, SimulatedMachines, FakeEc2]:
    """Three nodes of one MachineSet, on EC2."""
    there = world_of(start=start)
    machines, _ = in_pool(there, "n0", "n1", "n2")
    for number, name in enumerate(sorted(there.cluster.nodes)):
        node = there.cluster.nodes[name]
        there.cluster.put_node(replace(node, provider_id=f"aws:///{REGION}a/{_instance(number)}"))
        there.cluster.add_pod(builders.pod(f"web-{number}", name))
    ec2 = FakeEc2()
    there.clients["aws"] = ec2
    return there, machines, ec2


def _minutes(there: World, machines: SimulatedMachines, count: int) -> Iterator[int]:
    """Yield after each minute, in which the provider does its part."""
    for minute in range(count):
        play(there, SETTINGS, 1)
        machines.step()
        yield minute


def _event(code: str, there: World) -> InstanceEvent:
    return InstanceEvent("instance-event-1", code, not_before=there.now + timedelta(days=10))


def _removed(machines: SimulatedMachines) -> list[str]:
    return [one.node for one in machines.asked if isinstance(one, Remove)]


@pytest.mark.parametrize("code", CODES)
def test_the_machine_of_an_instance_with_an_event_is_deleted_and_another_comes(code: str) -> None:
    there, machines, ec2 = _fleet()
    ec2.events[_instance(0)] = _event(code, there)
    for _ in _minutes(there, machines, 20):
        pass

    assert _removed(machines) == ["n0"]
    assert "n0" not in there.cluster.nodes
    assert len(there.cluster.nodes) == 3


def test_instances_without_an_event_keep_their_machines() -> None:
    there, machines, _ = _fleet()
    play(there, SETTINGS, 20)

    assert not machines.asked


def test_ec2_is_asked_every_hour() -> None:
    there, _, ec2 = _fleet()
    play(there, SETTINGS, 59)
    assert ec2.asked == 1
    play(there, SETTINGS, 3)

    assert ec2.asked == 2


def test_one_machine_after_the_other() -> None:
    there, machines, ec2 = _fleet()
    for number in range(2):
        ec2.events[_instance(number)] = replace(_event("system-reboot", there), id=f"instance-event-{number}")
    out = [
        sum(node.unschedulable for node in there.cluster.nodes.values())
        for _ in _minutes(there, machines, 60)
    ]

    assert max(out) == 1
    assert _removed(machines) == ["n0", "n1"]


def test_nothing_begins_at_a_time_that_is_not_allowed() -> None:
    there, machines, ec2 = _fleet(datetime.fromisoformat("2026-12-28T12:00:00+00:00"))
    ec2.events[_instance(0)] = _event("system-reboot", there)
    play(there, SETTINGS, 30)

    assert not machines.asked
    assert not there.cluster.nodes["n0"].unschedulable


def test_the_machine_of_a_control_plane_node_is_never_deleted() -> None:
    there, machines, ec2 = _fleet()
    there.cluster.label("n0", CONTROL_PLANE_LABELS[0], "")
    ec2.events[_instance(0)] = _event("system-reboot", there)
    play(there, SETTINGS, 30)

    assert not machines.asked


def test_a_control_plane_node_takes_no_place_from_a_worker_that_is_due() -> None:
    there, machines, ec2 = _fleet()
    there.cluster.label("n0", CONTROL_PLANE_LABELS[0], "")
    ec2.events[_instance(0)] = _event("system-reboot", there)
    play(there, SETTINGS, 61)
    soon = there.now + timedelta(minutes=17)
    ec2.events[_instance(1)] = InstanceEvent("instance-event-2", "system-reboot", not_before=soon)
    for _ in _minutes(there, machines, 62):
        pass

    assert _removed(machines) == ["n1"]
    assert not there.cluster.nodes["n0"].unschedulable
