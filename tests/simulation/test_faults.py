"""What can go wrong in a simulated cluster: failing writes, conflicts, bad watches, slow controllers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.drain.drainer import Limits
from reconciler.model.drains import DrainOptions, DrainOrder, Phase
from reconciler.model.errors import Conflict, TooManyRequests, Unreachable
from reconciler.model.node import Wanted
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.model.writes import NodeWrite, node_write
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.world import World
from tests.simulation.building import PREFIX, START, budget, cordoning, name, pods_of, web, world

SECOND = timedelta(seconds=1)


def drain(there: World, minutes: int = 10) -> Phase:
    """Drain the first node, and return how its drain ended."""
    there.cluster.cordon(name(0))
    node = there.cluster.nodes[name(0)]
    there.drainer.start(DrainOrder(node.name, node.uid, there.now, timedelta(minutes=30), DrainOptions()))
    there.advance(timedelta(minutes=minutes))
    return there.drainer.progress()[name(0)].phase


def test_labels_that_were_not_asked_for_are_not_shown() -> None:
    there = world(1)
    there.cluster.label(name(0), f"{PREFIX}/state", "required")
    (shown,) = there.api.nodes(Wanted(frozenset({"Ready"}), PREFIX, labels=frozenset({"agentpool"})))
    (whole,) = there.api.nodes(Wanted(frozenset({"Ready"}), PREFIX))

    assert dict(shown.labels) == {"agentpool": "web", f"{PREFIX}/state": "required"}
    assert whole.labels == there.cluster.nodes[name(0)].labels


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
def test_a_write_fails_before_or_after_its_effect(moment: str) -> None:
    there = world(1)

    def fail(call: Call) -> None:
        raise Unreachable(f"{call.what} was cut off")

    setattr(there.api, moment, fail)
    with pytest.raises(Unreachable):
        there.api.patch_node(cordoning(there.cluster.nodes[name(0)]))

    done = moment == "after_write"
    assert there.cluster.nodes[name(0)].unschedulable is done
    assert [call.what for call in there.api.done] == (["patch_node"] if done else [])
    assert there.api.writes == 1


def test_a_hook_sees_what_is_written() -> None:
    there = world(1)
    seen: list[object] = []
    there.api.before_write = lambda call: seen.append(call.content)
    write = cordoning(there.cluster.nodes[name(0)])
    there.api.patch_node(write)

    assert seen == [write]


def test_a_stale_write_conflicts_where_our_own_keys_have_changed() -> None:
    there = world(1)
    seen = there.cluster.nodes[name(0)]
    there.cluster.annotate(name(0), f"{PREFIX}/record", "{}")

    with pytest.raises(Conflict):
        there.api.patch_node(node_write(seen, PREFIX, unschedulable=True))


def test_the_ledger_conflicts_while_another_client_keeps_writing_it_and_its_last_start_never_moves_back() -> (
    None
):
    there = world(1)
    there.api.write_ledger(Ledger(START))
    there.cluster.ledger_contended = True
    with pytest.raises(Conflict):
        there.api.write_ledger(Ledger(START + SECOND))
    assert there.cluster.ledger.last_start == START

    there.cluster.ledger_contended = False
    there.api.write_ledger(Ledger(START - SECOND))
    assert there.cluster.ledger.last_start == START


def test_a_node_that_brings_a_uid_is_taken_as_it_is() -> None:
    there = World(START)
    node = replace(world(1).cluster.nodes[name(0)], uid="mine", boot_id="")

    assert (there.cluster.add_node(node).uid, node.boot_id) == ("mine", "")


# Watches.


def test_news_that_lags_arrives_late_and_the_drain_ends_all_the_same() -> None:
    there = world(2, web(4))
    there.cluster.delivery = lambda item: (5 * SECOND,)

    assert drain(there) is Phase.DRAINED
    finished = there.drainer.progress()[name(0)].finished
    assert finished is not None
    assert finished - START - timedelta(minutes=1) >= 5 * SECOND


def test_news_that_comes_twice_changes_nothing() -> None:
    there = world(2, web(4))
    there.cluster.delivery = lambda item: (timedelta(), SECOND)

    assert drain(there) is Phase.DRAINED
    assert len({one.uid for one in there.api.pod_requests}) == len(there.api.pod_requests) > 0


def test_a_watch_that_lost_everything_delays_a_drain_by_a_bounded_time() -> None:
    there = world(2, web(4))
    there.cluster.delivery = lambda item: ()
    phase = drain(there, minutes=40)

    assert not there.cluster.pods_on(name(0))
    assert phase is Phase.DRAINED
    finished = there.drainer.progress()[name(0)].finished
    assert finished is not None
    # The drain begins after a minute, and a pod has 30 seconds to end.
    assert finished - START <= timedelta(minutes=1) + timedelta(seconds=30) + Limits().overdue + 5 * SECOND


def test_a_watch_that_breaks_is_opened_again() -> None:
    there = world(2, web(4), budgets=(budget(max_unavailable=1),))
    there.clock.after(3 * SECOND, lambda: there.cluster.break_watches(Unreachable("cut")))
    watches: list[Call] = []
    there.api.before_read = lambda call: watches.append(call) if call.what == "watch_pods" else None

    assert drain(there) is Phase.DRAINED
    assert len(watches) == 2


# Controllers that are slow, pods that do not go.


def test_until_the_controller_counts_again_the_server_gives_out_what_the_budget_allows_and_no_more() -> None:
    there = world(4, web(4), budgets=(budget(max_unavailable=1),))
    there.cluster.budget_lag = SECOND
    one, two, *_ = pods_of(there, "web")
    there.api.evict(one, grace=None)

    assert there.cluster.budgets["shop/web"].allowed == 0
    with pytest.raises(TooManyRequests):
        there.api.evict(two, grace=None)
    assert [request.granted for request in there.api.pod_requests] == [True, False]


def test_a_pod_with_a_finalizer_stays() -> None:
    there = world(1, web(1))
    (pod,) = pods_of(there, "web")
    there.cluster.finalizers.add(pod.uid)
    there.cluster.terminate(pod.uid, None)
    there.advance(timedelta(hours=1))

    assert pod.uid in there.cluster.pods


def test_a_killed_process_leaves_what_was_written() -> None:
    there = world(1)

    def kill(call: Call) -> None:
        raise ProcessKilled(call.what)

    there.api.after_write = kill
    with pytest.raises(ProcessKilled):
        there.api.patch_node(cordoning(there.cluster.nodes[name(0)]))

    assert there.cluster.nodes[name(0)].unschedulable
    assert isinstance(there.api.done[0].content, NodeWrite)


def test_a_pod_on_a_dead_node_goes_only_without_grace() -> None:
    there = world(1, web(1))
    (pod,) = pods_of(there, "web")
    there.cluster.node_down(name(0))
    there.cluster.terminate(pod.uid, None)
    there.advance(timedelta(hours=1))
    assert pod.uid in there.cluster.pods

    there.cluster.terminate(pod.uid, 0)
    assert pod.uid not in there.cluster.pods
