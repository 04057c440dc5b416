"""The agents of a simulation: the source reads what they publish, and they acknowledge what they are told."""

from __future__ import annotations

from reconciler.model.event import Kind, Reading
from reconciler.model.keys import OwnKeys
from reconciler.model.snapshot import Agents
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.simulation.clock import Actor
from reconciler.simulation.platform import Reporter, VmEvent
from reconciler.simulation.world import World
from reconciler.sources.imds import scheduled_events as imds
from reconciler.sources.imds import source as published
from reconciler.sources.imds.keys import ACKNOWLEDGED
from tests.simulation.building import PREFIX, START, name, web, world
from tests.simulation.reported import MINUTE, Reported, event

TRUSTING = parse_settings(
    "mode: Enforce\nbudget: {maxUnavailable: 3}\nevents: {Reboot: {acknowledge: true}}\n", "test.yaml"
)


class TestReported(Reported):
    reporter, other = Reporter.AGENT, Reporter.CONDITION

    def read(self, there: World) -> Reading:
        return published.read(there.cluster.nodes[name(0)], PREFIX, Agents(installed=True))


def test_of_several_events_the_agent_shows_all() -> None:
    there = world(1)
    there.platform.announce(event(Kind.REBOOT, minutes=60))
    there.platform.announce(event(Kind.FREEZE, minutes=24 * 60))

    shown = published.read(there.cluster.nodes[name(0)], PREFIX, Agents(installed=True)).signals
    assert {one.kind for one in shown} == {Kind.FREEZE, Kind.REBOOT}


def acknowledge(there: World, instance: int, *ids: str) -> None:
    """Have the agent of a node acknowledge these events."""
    there.cluster.annotate(name(instance), ACKNOWLEDGED.below(PREFIX), imds.to_acknowledgement(ids))


def of_two_vms() -> tuple[World, VmEvent, VmEvent]:
    """A world in which one event names the VMs of two nodes."""
    there = world(3)
    first, second = (
        VmEvent(name(instance), Kind.REBOOT, START + 15 * MINUTE, reported_by=Reporter.AGENT, id="A1")
        for instance in (0, 1)
    )
    there.platform.announce(first)
    there.platform.announce(second)
    return there, first, second


def test_an_event_of_several_vms_names_all_of_them_on_each_of_their_nodes() -> None:
    there, _, _ = of_two_vms()
    named = [
        signal.resources
        for instance in (0, 1)
        for signal in published.read(
            there.cluster.nodes[name(instance)], PREFIX, Agents(installed=True)
        ).signals
    ]

    assert named[0] == named[1]
    assert len(named[0]) == 2


def test_an_acknowledged_event_starts_early_on_all_its_vms() -> None:
    there, *events = of_two_vms()
    acknowledge(there, 0, "a1")
    assert not there.log.of(Actor.PLATFORM, "Reboot started")
    there.advance(MINUTE / 2)

    assert [one.node for one in there.log.of(Actor.PLATFORM, "Reboot started")] == [
        one.node for one in events
    ]


def test_what_is_removed_before_the_agent_reads_it_does_not_start() -> None:
    there, *_ = of_two_vms()
    acknowledge(there, 0, "A1")
    there.cluster.annotate(name(0), ACKNOWLEDGED.below(PREFIX), None)
    there.advance(MINUTE)

    assert not there.log.of(Actor.PLATFORM, "Reboot started")


def test_an_event_that_the_annotation_does_not_name_is_not_started() -> None:
    there, *_ = of_two_vms()
    acknowledge(there, 0, "B2")
    acknowledge(there, 2, "A1")
    there.advance(MINUTE)

    assert not there.log.of(Actor.PLATFORM, "Reboot started")


def test_an_event_of_two_vms_starts_once_both_nodes_are_drained_and_long_before_its_time() -> None:
    there = world(4, web(6))
    due = START + 14 * MINUTE
    for instance in (0, 1):
        one = VmEvent(name(instance), Kind.REBOOT, due, reported_by=Reporter.AGENT, id="A1")
        there.platform.announce(one)
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
        assert not {keys.record, ACKNOWLEDGED.below(PREFIX)} & set(node.annotations)
