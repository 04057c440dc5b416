"""examples/drainsafe.yaml does what the README of drainsafe says, but for what docs/publishing.md names.

The README (github.com/awesomenix/drainsafe): it "lets safely drain the workload based on planned/unplanned
maintenance events", and annotates the node with the "current state of actions".
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from reconciler.features.publishing.drainsafe import DRAINSAFE_STATE, DRAINSAFE_TYPE
from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.simulation.clock import Happening
from reconciler.simulation.platform import Reporter, VmEvent
from reconciler.simulation.world import World
from tests.examples.playing import BARE, CACHE, LOGS, MINUTE, WEB, apps_on, example, play
from tests.simulation.building import START, name, world
from tests.support import builders

SETTINGS = example("drainsafe")
EXAMPLE = Path(__file__).parents[3] / "examples" / "drainsafe.yaml"
PAGE = Path(__file__).parents[3] / "docs" / "publishing.md"
README = (
    "MaintenanceScheduled",
    "NodeCordoning",
    "NodeCordoned",
    "NodeDraining",
    "NodeDrained",
    "MaintenanceStarted",
    "NodeRunning",
    "NodeUncordoned",
)
"""The events of the section "Events", in its order."""
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
    assert passed == sorted(passed, key=README.index)
    assert set(README) - set(passed) == LEFT_OUT


LEFT_OUT = {"MaintenanceScheduled", "NodeCordoning", "NodeCordoned", "NodeUncordoned"}
"""Of a node that may start at once."""


def test_the_page_says_which_states_of_its_readme_are_left_out_and_when() -> None:
    page = PAGE.read_text(encoding="utf-8")
    differs = page[page.index("They differ from what drainsafe's README says") :].partition("### ")[0]

    assert {state for state in LEFT_OUT if f"`{state}`" not in differs} == set()


def test_a_node_that_waits_for_its_turn_is_queued_for_cordoning() -> None:
    """The README: "Node is queued for cordoning"."""
    there, _ = _announced(Kind.REBOOT)
    there.platform.announce(VmEvent(name(1), Kind.REBOOT, LATER, reported_by=Reporter.AGENT))
    text = EXAMPLE.read_text(encoding="utf-8")
    play(there, builders.settings(text.replace("maxUnavailable: 100%", "maxUnavailable: 1")), 2)
    states = [there.cluster.nodes[name(number)].annotations[DRAINSAFE_STATE] for number in range(2)]

    assert states[1] == "NodeCordoning"
    assert states[0] != "NodeCordoning"


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
