"""examples/mechanic.yaml does what the README of mechanic says.

Its first promise (github.com/amargherio/mechanic, README.md, "Description"): it prevents the impact of
"maintenance events that require node reboots or live migrations". Its deployment has `reboot: true` and
`freeze: false`. Of the rest the README says: "If the maintenance event or node condition is deemed impactful,
it will cordon the node and begin draining pods to other nodes in the cluster."
"""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind
from reconciler.model.node import MECHANIC_LABEL
from reconciler.simulation.platform import VmEvent
from tests.examples.playing import BARE, CACHE, LOGS, MINUTE, WEB, apps_on, example, play
from tests.simulation.building import START, name, world

SETTINGS = example("mechanic")
SOON = START + 12 * MINUTE


@pytest.mark.parametrize(
    "kind", [Kind.REBOOT, Kind.LIVE_MIGRATION, Kind.REDEPLOY, Kind.PREEMPT, Kind.TERMINATE]
)
def test_a_node_is_cordoned_and_drained_as_soon_as_the_event_is_seen(kind: Kind) -> None:
    there = world(4, WEB, CACHE, BARE, LOGS)
    assert apps_on(there, name(0)) > {"logs"}
    there.platform.announce(VmEvent(name(0), kind, SOON))
    play(there, SETTINGS, 3)

    assert there.cluster.nodes[name(0)].unschedulable
    assert apps_on(there, name(0)) == {"logs"}


def test_a_freeze_moves_no_pod_unnecessarily() -> None:
    """The README: "without moving pods unnecessarily or causing application downtime"."""
    there = world(4, WEB)
    there.platform.announce(VmEvent(name(0), Kind.FREEZE, SOON))
    play(there, SETTINGS, 3)

    assert not there.cluster.nodes[name(0)].unschedulable


def test_every_node_is_drained_by_itself() -> None:
    there = world(4, WEB)
    for instance in range(3):
        there.platform.announce(VmEvent(name(instance), Kind.REDEPLOY, SOON))
    play(there, SETTINGS, 1)

    assert [there.cluster.nodes[name(one)].unschedulable for one in range(4)] == [True, True, True, False]


def test_the_node_is_uncordoned_when_the_event_is_over() -> None:
    """The README: its label is "an input on whether to uncordon the node" once there is no condition."""
    there = world(4, WEB)
    there.platform.announce(VmEvent(name(0), Kind.LIVE_MIGRATION, SOON))
    play(there, SETTINGS, 35)

    node = there.cluster.nodes[name(0)]
    assert not node.unschedulable
    assert not node.annotations


def test_a_cordon_that_was_there_before_stays() -> None:
    there = world(4, WEB)
    there.cluster.cordon(name(0))
    there.platform.announce(VmEvent(name(0), Kind.REDEPLOY, SOON))
    play(there, SETTINGS, 3)
    assert apps_on(there, name(0)) == set()
    play(there, SETTINGS, 35)

    assert there.cluster.nodes[name(0)].unschedulable


def test_a_node_that_mechanic_has_cordoned_comes_back() -> None:
    there = world(4, WEB)
    there.cluster.cordon(name(0))
    there.cluster.label(name(0), MECHANIC_LABEL, "true")
    play(there, SETTINGS, 10)

    node = there.cluster.nodes[name(0)]
    assert not node.unschedulable
    assert MECHANIC_LABEL not in node.labels
