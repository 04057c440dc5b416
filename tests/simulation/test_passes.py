"""Whole passes over a simulated world: drains step by step, deaths, and the audit of what was done."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.commands.demo import Audit
from reconciler.model.drains import Phase
from reconciler.model.event import Kind
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.clock import Actor
from reconciler.simulation.platform import VmEvent
from reconciler.simulation.world import World
from tests.simulation.building import START, budget, cordoning, name, pods_of, web, world
from tests.support.searching import kills

MINUTE = timedelta(minutes=1)
SETTINGS = parse_settings("mode: Enforce\nbudget: {maxUnavailable: 1, perZone: 1}\n", "test.yaml")


def play(there: World, minutes: int, settings: Settings = SETTINGS) -> None:
    """Run a pass a minute, with a new process after each death."""
    for _ in range(minutes):
        try:
            run_pass(there.outside, settings, there.now)
            there.advance(MINUTE)
        except ProcessKilled:
            there.restart()
            there.advance(MINUTE)


def with_reboot() -> World:
    """A world in which one node is going to be rebooted."""
    there = world(4, web(6), budgets=(budget(max_unavailable=1),))
    there.platform.announce(VmEvent(name(0), Kind.REBOOT, START + 20 * MINUTE))
    return there


def test_a_reboot_is_drained_for_and_the_node_comes_back() -> None:
    there = with_reboot()
    audit = Audit(there, SETTINGS)
    pods = len(there.cluster.pods_on(name(0)))

    play(there, 12)
    assert there.cluster.nodes[name(0)].unschedulable
    assert there.drainer.progress()[name(0)].phase is Phase.DRAINED
    assert not there.cluster.pods_on(name(0))
    play(there, 30)

    node = there.cluster.nodes[name(0)]
    assert not node.unschedulable
    assert not node.annotations
    assert (audit.cordons, audit.uncordons, audit.violations) == (1, 1, [])
    assert audit.evictions == pods > 0


def test_two_runs_write_the_same_log() -> None:
    logs = []
    for _ in range(2):
        there = with_reboot()
        play(there, 40)
        logs.append([str(one) for one in there.log.happenings])

    assert logs[0] == logs[1]
    assert len(logs[0]) > 15


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", kills(8))
def test_after_a_kill_around_any_write_the_next_process_finishes(number: int, after: bool) -> None:
    there = with_reboot()
    audit = Audit(there, SETTINGS)
    killed = []

    def kill(call: Call) -> None:
        if call.number == number:
            killed.append(call)
            raise ProcessKilled(str(call))

    if after:
        there.api.after_write = kill
    else:
        there.api.before_write = kill
    play(there, 45)

    node = there.cluster.nodes[name(0)]
    assert killed
    assert not node.unschedulable
    assert not node.annotations
    assert audit.violations == []


def test_a_dead_process_evicts_nothing_more() -> None:
    there = with_reboot()
    play(there, 1)
    there.advance(4 * MINUTE)
    run_pass(there.outside, SETTINGS, there.now)
    there.restart()
    evicted = len(there.log.of(Actor.US, "evict"))

    there.advance(10 * MINUTE)

    assert len(there.log.of(Actor.US, "evict")) == evicted
    assert dict(there.drainer.progress()) == {}


def test_the_audit_notices_an_overdrawn_budget_and_an_eviction_from_an_open_node() -> None:
    there = world(6, web(6))
    audit = Audit(there, SETTINGS)
    there.api.patch_node(cordoning(there.cluster.nodes[name(0)]))
    assert audit.violations == []

    there.api.patch_node(cordoning(there.cluster.nodes[name(3)]))
    there.api.evict(next(pod for pod in pods_of(there, "web") if pod.node == name(1)), grace=None)

    assert [text.split()[2] for text in audit.violations] == ["cordoned", "cordoned", "evicted"]
    assert "perZone" in audit.violations[1]
