"""The scripted Azure changes VMs."""

from __future__ import annotations

from reconciler.model.event import Kind
from tests.simulation.building import name, web, world
from tests.simulation.reported import MINUTE, event


def test_a_reboot_takes_the_node_down_and_brings_it_back_with_another_boot_id() -> None:
    there = world(2, web(2))
    boot = there.cluster.nodes[name(0)].boot_id
    there.platform.announce(event(Kind.REBOOT))

    there.advance(15 * MINUTE)
    assert not there.cluster.nodes[name(0)].ready
    there.advance(4 * MINUTE)
    assert there.cluster.nodes[name(0)].ready
    assert there.cluster.nodes[name(0)].boot_id != boot


def test_a_pause_leaves_the_node_ready() -> None:
    there = world(1)
    there.platform.announce(event(Kind.LIVE_MIGRATION))
    there.advance(15 * MINUTE)

    assert there.cluster.nodes[name(0)].ready


def test_a_preempted_node_vanishes_with_its_pods() -> None:
    there = world(2, web(2))
    there.platform.announce(event(Kind.PREEMPT))
    there.advance(15 * MINUTE)

    assert list(there.cluster.nodes) == [name(1)]
    assert {pod.node for pod in there.cluster.pods.values()} == {name(1)}
