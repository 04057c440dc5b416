"""The ports over the simulated cluster: optimistic concurrency, heartbeats, and every place to fail at."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.errors import Conflict, NotFound, Unreachable
from reconciler.model.node import Wanted
from reconciler.model.plan import Notice
from reconciler.model.ports import Notification
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.simulation.api import Call, ProcessKilled, SimulatedApi
from reconciler.simulation.clock import Actor
from tests.laws.histories import MAIN
from tests.simulation.building import START, cordoning, name, pods_of, web, world

WANTED = Wanted(frozenset({MAIN, "Ready"}), "node-maintenance.dev")


def test_a_node_that_others_changed_meanwhile_is_written() -> None:
    there = world(1)
    write = cordoning(there.cluster.nodes[name(0)])
    there.cluster.touch(name(0))

    there.api.patch_node(write)

    assert there.cluster.nodes[name(0)].unschedulable


def test_a_stale_write_fails_if_our_keys_or_the_cordon_have_changed() -> None:
    there = world(3)
    one, two, three = (there.cluster.nodes[name(instance)] for instance in range(3))
    there.cluster.annotate(one.name, "node-maintenance.dev/record", "other")
    there.cluster.cordon(two.name)
    there.cluster.recreate_node(three.name)

    with pytest.raises(Conflict):
        there.api.patch_node(cordoning(one))
    with pytest.raises(Conflict):
        there.api.patch_node(replace(cordoning(two), annotations={"node-maintenance.dev/record": "ours"}))
    with pytest.raises(Conflict):
        there.api.patch_node(cordoning(three))
    there.cluster.delete_node(one.name)
    with pytest.raises(NotFound):
        there.api.patch_node(cordoning(one))


def test_a_stale_write_that_has_come_true_already_is_a_quiet_success() -> None:
    there = world(1)
    write = cordoning(there.cluster.nodes[name(0)])
    there.api.patch_node(write)
    before = there.cluster.nodes[name(0)]

    there.api.patch_node(write)

    assert there.cluster.nodes[name(0)] == before


@pytest.mark.parametrize("done", [pytest.param(False, id="before"), pytest.param(True, id="after")])
def test_what_kills_before_a_write_leaves_it_undone_and_after_it_done(done: bool) -> None:
    there = world(1, web(1))
    (pod,) = pods_of(there, "web")

    def kill(call: Call) -> None:
        raise ProcessKilled(str(call))

    if done:
        there.api.after_write = kill
    else:
        there.api.before_write = kill
    with pytest.raises(ProcessKilled):
        there.api.patch_node(cordoning(there.cluster.nodes[name(0)]))
    with pytest.raises(ProcessKilled):
        there.api.write_ledger(Ledger(START))
    with pytest.raises(ProcessKilled):
        there.api.notify(Notification(name(0), "uid", Notice("MaintenanceCordon", "because")))
    with pytest.raises(ProcessKilled):
        there.api.evict(pod, grace=None)

    assert there.cluster.nodes[name(0)].unschedulable is done
    assert (there.cluster.ledger == Ledger(START)) is done
    assert bool(there.cluster.events) is done
    assert (there.cluster.pods[pod.uid].deleting_until is not None) is done
    assert there.api.writes == 4


def test_a_failure_to_write_an_event_is_never_raised() -> None:
    there = world(1)

    def refuse(call: Call) -> None:
        raise Unreachable(f"no answer to {call.what}")

    there.api.before_write = refuse
    there.api.notify(Notification(name(0), "uid", Notice("MaintenanceCordon", "because")))

    assert not there.cluster.events
    assert there.log.of(Actor.US, "notify failed")


def test_reads_can_fail_too() -> None:
    there = world(1)

    def refuse(call: Call) -> None:
        if call.what == "nodes":
            raise Unreachable("no answer")

    there.api.before_read = refuse
    with pytest.raises(Unreachable):
        there.api.nodes(WANTED)
    assert there.api.pods() == ()


def test_a_node_is_cut_to_what_is_wanted_with_a_heartbeat_of_at_most_five_minutes() -> None:
    there = world(1)
    there.cluster.annotate(name(0), "node-maintenance.dev/request", "{}")
    there.cluster.annotate(name(0), "other/key", "x")
    there.advance(timedelta(hours=1, seconds=100))

    (node,) = there.api.nodes(WANTED)

    assert set(node.annotations) == {"node-maintenance.dev/request"}
    assert {one.type for one in node.conditions} == {MAIN, "Ready"}
    beats = [one.heartbeat for one in node.conditions]
    assert all(beat and there.now - timedelta(minutes=5) < beat <= there.now for beat in beats)


def test_a_detector_that_died_writes_no_more_heartbeats() -> None:
    there = world(1)
    there.api.silent_since[name(0)] = there.now
    died = there.now
    there.advance(timedelta(hours=1))

    (node,) = SimulatedApi.nodes(there.api, WANTED)

    condition = node.condition(MAIN)
    assert condition is not None
    assert condition.heartbeat is not None
    assert condition.heartbeat <= died
