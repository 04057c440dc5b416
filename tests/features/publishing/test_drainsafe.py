"""examples/drainsafe.yaml does what the README of drainsafe says."""

from __future__ import annotations

from itertools import groupby

import pytest

from reconciler.features.publishing.drainsafe import DRAINSAFE_STATE, DRAINSAFE_TYPE
from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.simulation.clock import Happening
from reconciler.simulation.platform import Reporter, VmEvent
from reconciler.simulation.world import World
from tests.examples.playing import BARE, CACHE, LOGS, MINUTE, WEB, apps_on, example, play
from tests.simulation.building import START, name, world

SETTINGS = example("drainsafe")
LATER = START + 14 * MINUTE


def _announced(kind: Kind) -> tuple[World, VmEvent]:
    there = world(4, WEB, CACHE, BARE, LOGS)
    event = VmEvent(name(0), kind, LATER, reported_by=Reporter.AGENT)
    there.platform.announce(event)
    return there, event


@pytest.mark.parametrize("kind", [Kind.REBOOT, Kind.REDEPLOY])
def test_the_states_of_its_readme_are_passed_in_their_order(kind: Kind) -> None:
    there, _ = _announced(kind)
    states: list[str] = []

    def note(node: Node) -> None:
        if node.name == name(0):
            states.append(node.annotations.get(DRAINSAFE_STATE, ""))
            assert node.annotations.get(DRAINSAFE_TYPE, kind.value) == kind.value

    there.cluster.node_listeners.append(note)
    play(there, SETTINGS, 40)

    passed = [state for state, _ in groupby(states) if state]
    assert passed == ["NodeDraining", "NodeDrained", "MaintenanceStarted", "NodeRunning"]


@pytest.mark.parametrize("kind", [Kind.REBOOT, Kind.REDEPLOY, Kind.TERMINATE])
def test_the_platform_is_asked_to_start_once_the_node_is_empty(kind: Kind) -> None:
    there, event = _announced(kind)
    left: list[set[str]] = []

    def note(happening: Happening) -> None:
        if happening.what == f"{kind} acknowledged":
            left.append(apps_on(there, name(0)))

    there.log.listeners.append(note)
    play(there, SETTINGS, 10)

    assert there.now < event.not_before
    assert left == [{"logs"}]


def test_a_freeze_drains_nothing() -> None:
    there, _ = _announced(Kind.FREEZE)
    play(there, SETTINGS, 5)

    assert not there.cluster.nodes[name(0)].unschedulable


def test_the_node_stays_cordoned_while_the_maintenance_runs_and_comes_back_after_it() -> None:
    there, _ = _announced(Kind.REBOOT)
    cordoned = []
    for _ in range(40):
        play(there, SETTINGS, 1)
        if there.platform.reported(name(0)):
            cordoned.append(there.cluster.nodes[name(0)].unschedulable)

    assert len(cordoned) > 5
    assert all(cordoned)
    assert not there.cluster.nodes[name(0)].unschedulable
