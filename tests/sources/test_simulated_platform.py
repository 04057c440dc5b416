"""The scripted Azure: the sources can read its reports, and it changes VMs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.event import Answer, Kind, Reading, Signal, Status
from reconciler.model.keys import OwnKeys
from reconciler.model.snapshot import Agents
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.simulation.clock import Actor
from reconciler.simulation.platform import Reporter, VmEvent
from reconciler.simulation.world import World
from reconciler.sources.condition import source as node_condition
from reconciler.sources.imds import scheduled_events as imds
from reconciler.sources.imds import source as published
from reconciler.sources.imds.keys import ACKNOWLEDGED
from tests.simulation.building import PREFIX, START, name, web, world

MINUTE = timedelta(minutes=1)
KINDS = (Kind.FREEZE, Kind.LIVE_MIGRATION, Kind.REBOOT, Kind.REDEPLOY, Kind.PREEMPT, Kind.TERMINATE)


def event(kind: Kind, reporter: Reporter = Reporter.BOTH, minutes: int = 15) -> VmEvent:
    """An event of the first node."""
    return VmEvent(name(0), kind, START + timedelta(minutes=minutes), seconds=5, reported_by=reporter)


def readings(there: World) -> tuple[Reading, Reading]:
    """What both sources make of the first node."""
    node = there.cluster.nodes[name(0)]
    return node_condition.read(node)[0], published.read(node, PREFIX, Agents(installed=True))


def signals(there: World) -> tuple[Signal, ...]:
    """The events that both report."""
    return tuple(signal for reading in readings(there) for signal in reading.signals)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sources_read_what_the_platform_reports(kind: Kind) -> None:
    there, planned = world(1), event(kind)
    there.platform.announce(planned)

    for signal in signals(there):
        assert (signal.kind, signal.status) == (kind, Status.SCHEDULED)
        assert (signal.not_before, signal.duration) == (planned.not_before, timedelta(seconds=5))
        assert signal.id == planned.event_id
    assert len(signals(there)) == 2


def test_a_started_event_is_reported_without_a_date_until_it_is_over() -> None:
    there = world(1)
    there.platform.announce(event(Kind.FREEZE))
    there.advance(15 * MINUTE)

    assert [(one.status, one.not_before) for one in signals(there)] == [(Status.STARTED, None)] * 2
    there.advance(10 * MINUTE)
    assert [one.answer for one in readings(there)] == [Answer.NO_EVENT] * 2


@pytest.mark.parametrize(
    ("reporter", "count"), [(Reporter.CONDITION, (1, 0)), (Reporter.AGENT, (0, 1)), (Reporter.BOTH, (1, 1))]
)
def test_an_event_is_reported_only_by_the_sources_that_it_names(
    reporter: Reporter, count: tuple[int, int]
) -> None:
    there = world(1)
    there.platform.announce(event(Kind.REBOOT, reporter))

    condition, agent = readings(there)

    assert (len(condition.signals), len(agent.signals)) == count


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


def test_a_cancelled_event_is_no_longer_reported_and_nothing_happens() -> None:
    there, planned = world(1), event(Kind.REBOOT)
    there.platform.announce(planned)
    there.platform.cancel(planned)

    assert [one.answer for one in readings(there)] == [Answer.NO_EVENT] * 2
    there.advance(60 * MINUTE)
    assert there.cluster.nodes[name(0)].ready


def test_a_failure_strikes_without_notice() -> None:
    there = world(1)
    there.platform.strike(event(Kind.REDEPLOY))

    assert {one.status for one in signals(there)} == {Status.STARTED}
    assert not there.cluster.nodes[name(0)].ready


def test_a_recreated_vm_has_none_of_the_old_one_s_events() -> None:
    there = world(1)
    there.platform.announce(event(Kind.REBOOT))
    there.cluster.recreate_node(name(0))

    there.advance(60 * MINUTE)

    assert there.cluster.nodes[name(0)].ready
    assert there.cluster.nodes[name(0)].condition(node_condition.MAIN) is None


def test_of_several_events_the_condition_shows_one_and_the_agent_all() -> None:
    """The detector sorts dates as text, so that a Thursday comes before the Wednesday that precedes it."""
    there = world(1)
    there.platform.announce(event(Kind.REBOOT, minutes=60))
    there.platform.announce(event(Kind.FREEZE, minutes=24 * 60))

    condition, agent = readings(there)

    assert [one.kind for one in condition.signals] == [Kind.FREEZE]
    assert {one.kind for one in agent.signals} == {Kind.FREEZE, Kind.REBOOT}


# Acknowledging.


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
        assert not {keys.record, ACKNOWLEDGED.below(PREFIX)} & set(node.annotations)
