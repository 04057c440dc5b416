"""Acknowledging over whole passes: the agents start the event as soon as all its nodes are drained."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.event import Kind
from reconciler.model.keys import OwnKeys
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.simulation.clock import Actor
from reconciler.simulation.platform import Reporter, VmEvent
from tests.simulation.building import PREFIX, START, name, web, world

MINUTE = timedelta(minutes=1)
TRUSTING = parse_settings(
    "mode: Enforce\nbudget: {maxUnavailable: 3}\nevents: {Reboot: {acknowledge: true}}\n", "test.yaml"
)


def test_an_event_of_two_vms_starts_once_both_nodes_are_drained_and_long_before_its_time() -> None:
    there = world(4, web(6))
    due = START + 14 * MINUTE
    for instance in (0, 1):
        event = VmEvent(name(instance), Kind.REBOOT, due, reported_by=Reporter.AGENT, id="A1")
        there.platform.announce(event)
    emptied_at_start: list[bool] = []
    there.log.listeners.append(
        lambda one: (
            emptied_at_start.append(not there.cluster.pods_on(one.node))
            if one.what == "Reboot started"
            else None
        )
    )
    for _ in range(40):
        run_pass(there.outside, TRUSTING, there.now)
        there.advance(MINUTE)

    started = there.log.of(Actor.PLATFORM, "Reboot started")
    assert sorted(one.node for one in started) == [name(0), name(1)]
    assert all(one.at < due - 5 * MINUTE for one in started)
    assert emptied_at_start == [True, True]
    keys = OwnKeys(PREFIX)
    for node in there.cluster.nodes.values():
        assert not node.unschedulable
        assert not {keys.record, keys.acknowledge} & set(node.annotations)
