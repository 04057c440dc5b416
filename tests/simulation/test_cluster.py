"""The simulated cluster moves as a real one does: pods, nodes, budgets, evictions."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from reconciler.model.errors import Conflict, NotFound, Rejected, TooManyRequests
from reconciler.model.node import Condition
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetGone, Listed, PodGone
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.simulation.clock import VirtualClock
from reconciler.simulation.workloads import BudgetSpec, Workload, budget_status
from tests.simulation.building import START, budget, name, pods_of, web, world

SECOND = timedelta(seconds=1)


def test_pods_are_spread_and_become_ready_after_their_time() -> None:
    there = world(3)
    there.cluster.add_workload(web(3))

    assert {pod.node for pod in pods_of(there, "web")} == {name(0), name(1), name(2)}
    assert not any(pod.ready for pod in pods_of(there, "web"))
    there.advance(8 * SECOND)
    assert all(pod.ready and pod.phase == "Running" for pod in pods_of(there, "web"))


def test_an_eviction_is_graceful_and_its_successor_starts_at_once_elsewhere() -> None:
    there = world(3, web(3))
    there.cluster.cordon(name(0))
    (pod,) = there.api.pods(name(0))

    there.api.evict(pod, grace=None)

    leaving = there.cluster.pods[pod.uid]
    assert leaving.deleting_until == there.now + timedelta(seconds=30)
    successor = pods_of(there, "web")[-1]
    assert successor.node in (name(1), name(2))
    assert not successor.ready
    there.advance(3 * SECOND)
    assert pod.uid not in there.cluster.pods
    there.advance(5 * SECOND)
    assert all(one.ready for one in pods_of(there, "web"))


def test_a_stateful_pod_comes_again_under_its_name_only_when_it_has_gone() -> None:
    there = world(2, Workload("shop", "db", "StatefulSet", replicas=2))
    pod = pods_of(there, "db")[0]

    there.api.evict(pod, grace=None)

    assert len(pods_of(there, "db")) == 2
    there.advance(3 * SECOND)
    again = there.cluster.find_pod(pod.key)
    assert again is not None
    assert again.uid != pod.uid


def test_daemons_run_on_cordoned_nodes_too_and_others_wait_for_room() -> None:
    there = world(1)
    there.cluster.cordon(name(0))
    there.cluster.add_workload(Workload("kube-system", "proxy", "DaemonSet"))
    there.cluster.add_workload(web(1))

    assert [pod.node for pod in pods_of(there, "proxy")] == [name(0)]
    assert [pod.node for pod in pods_of(there, "web")] == [""]
    there.cluster.cordon(name(0), on=False)
    assert [pod.node for pod in pods_of(there, "web")] == [name(0)]


def test_a_budget_refuses_in_the_words_of_the_api_server_and_lets_go_when_it_can() -> None:
    there = world(2, web(2), budgets=(budget(max_unavailable=1),))
    one, two = pods_of(there, "web")
    there.api.evict(one, grace=None)

    with pytest.raises(TooManyRequests) as refused:
        there.api.evict(two, grace=None)

    assert refused.value.causes == ("The disruption budget web needs 1 healthy pods and has 1 currently",)
    there.advance(8 * SECOND)
    there.api.evict(two, grace=None)


def test_a_pod_under_two_budgets_is_never_evicted() -> None:
    twice = budget(max_unavailable=1)
    there = world(2, web(2), budgets=(twice, replace(twice, name="again")))

    with pytest.raises(Rejected, match="more than one PodDisruptionBudget"):
        there.api.evict(pods_of(there, "web")[0], grace=None)


def test_no_budget_is_asked_about_a_pod_that_never_started_or_is_leaving() -> None:
    there = world(1, web(1), budgets=(budget(max_unavailable=0),))
    (pod,) = pods_of(there, "web")
    there.api.delete(pod, grace=None)

    there.api.evict(pod, grace=None)
    there.api.evict(pods_of(there, "web")[-1], grace=None)


def test_an_eviction_names_the_uid() -> None:
    there = world(1, Workload("shop", "db", "StatefulSet"))
    (pod,) = pods_of(there, "db")
    there.api.delete(pod, grace=0)

    with pytest.raises(Conflict):
        there.api.evict(pod, grace=None)
    with pytest.raises(NotFound):
        there.api.evict(replace(pod, name="db-9"), grace=None)


def test_a_dead_kubelet_ends_no_pod_until_it_is_back_or_its_node_is_deleted() -> None:
    there = world(2, web(2))
    one, two = pods_of(there, "web")
    there.cluster.node_down(one.node)
    there.api.evict(one, grace=None)

    there.advance(timedelta(minutes=5))
    assert one.uid in there.cluster.pods
    boot = there.cluster.nodes[one.node].boot_id
    there.cluster.node_up(one.node)
    assert one.uid not in there.cluster.pods
    assert there.cluster.nodes[one.node].boot_id != boot
    there.cluster.delete_node(two.node)
    assert two.uid not in there.cluster.pods


def test_pods_of_a_node_that_was_away_are_ready_again_after_their_start() -> None:
    there = world(1, web(1))
    there.cluster.node_down(name(0))
    assert not pods_of(there, "web")[0].ready
    there.advance(60 * SECOND)
    there.cluster.node_up(name(0))

    there.advance(7 * SECOND)
    assert not pods_of(there, "web")[0].ready
    there.advance(SECOND)
    assert pods_of(there, "web")[0].ready


def test_a_node_created_again_under_its_name_has_another_uid_and_none_of_our_keys() -> None:
    there = world(1)
    there.cluster.cordon(name(0))
    there.cluster.annotate(name(0), "node-maintenance.dev/record", "{}")
    there.cluster.label(name(0), "node-maintenance.dev/state", "in-maintenance")
    before = there.cluster.nodes[name(0)]

    after = there.cluster.recreate_node(name(0))

    assert after.uid != before.uid
    assert not after.unschedulable
    assert not after.annotations
    assert after.labels == {key: text for key, text in before.labels.items() if "dev/state" not in key}


def test_a_condition_keeps_its_transition_while_its_status_stays() -> None:
    there = world(1)
    there.cluster.set_condition(name(0), Condition("KernelDeadlock", "True", message="one"))
    since = there.now
    there.advance(SECOND)
    there.cluster.set_condition(name(0), Condition("KernelDeadlock", "True", message="two"))

    found = there.cluster.nodes[name(0)].condition("KernelDeadlock")
    assert found is not None
    assert (found.transition, found.message) == (since, "two")


def test_watches_list_first_and_report_every_change_after_that() -> None:
    there = world(1, web(1), budgets=(budget(max_unavailable=1),))
    (pod,) = pods_of(there, "web")
    pods, budgets = there.api.watch_pods(name(0)), there.api.watch_budgets()
    assert [getattr(item, "uid", item) for item in pods.take()] == [pod.uid, Listed()]
    assert [getattr(item, "key", item) for item in budgets.take()] == ["shop/web", Listed()]

    there.api.delete(pod, grace=0)
    there.cluster.drop_budget("shop/web")

    assert PodGone(pod.uid) in pods.take()
    assert budgets.take()[-1] == BudgetGone("shop/web")
    with pods as items:
        assert list(items) == []
    there.cluster.add_workload(Workload("shop", "late"))
    assert pods.take() == ()


def test_restarting_a_singleton_brings_the_new_pod_up_before_the_old_one_goes() -> None:
    there = world(2, web(1))
    (old,) = pods_of(there, "web")

    assert there.api.restart(old, there.now) == "Deployment shop/web"

    there.advance(7 * SECOND)
    assert there.cluster.pods[old.uid].deleting_until is None
    there.advance(4 * SECOND)
    (new,) = pods_of(there, "web")
    assert new.ready
    assert new.uid != old.uid
    there.cluster.scale("shop/web", 2)
    with pytest.raises(Rejected):
        there.api.restart(new, there.now)


def test_scaling_down_ends_pods_and_scaling_up_makes_them() -> None:
    there = world(2, web(2))
    there.cluster.scale("shop/web", 4)
    assert len(pods_of(there, "web")) == 4
    there.cluster.scale("shop/web", 1)
    there.advance(60 * SECOND)
    assert len(pods_of(there, "web")) == 1


WEB = Workload("shop", "web", replicas=7)


def pods(ready: int, unready: int = 0, leaving: int = 0) -> list[Pod]:
    """So many pods of one workload; those that leave are still ready."""
    made = [WEB.pod(number) for number in range(ready + unready + leaving)]
    return [
        replace(
            pod,
            ready=index < ready or index >= ready + unready,
            deleting_until=START if index >= ready + unready else None,
        )
        for index, pod in enumerate(made)
    ]


@pytest.mark.parametrize(
    ("limit", "there", "desired", "healthy", "allowed"),
    [
        pytest.param({"min_available": 3}, pods(4), 3, 4, 1, id="a number of available pods"),
        pytest.param({"min_available": 5}, pods(4), 5, 4, 0, id="never below zero"),
        pytest.param({"min_available": "50%"}, pods(7), 4, 7, 3, id="half of the 7 wanted is 4: rounded up"),
        pytest.param({"max_unavailable": 1}, pods(7), 6, 7, 1, id="one may be away"),
        pytest.param({"max_unavailable": "25%"}, pods(7), 5, 7, 2, id="a quarter of 7 is 2: rounded up"),
        pytest.param(
            {"max_unavailable": 1}, pods(6, 1), 6, 6, 0, id="the one that is unready is the one away"
        ),
        pytest.param(
            {"max_unavailable": 1}, pods(6, 0, 1), 6, 6, 0, id="who terminates is away, ready or not"
        ),
        pytest.param({"max_unavailable": 9}, pods(7), 0, 7, 7, id="more than there are"),
        pytest.param({"min_available": 0}, [], 0, 0, 0, id="nothing is covered, nothing is allowed"),
    ],
)
def test_a_budget_allows_what_the_disruption_controller_would(
    limit: dict[str, int | str], there: list[Pod], desired: int, healthy: int, allowed: int
) -> None:
    spec = BudgetSpec("shop", "web", LabelSelector.of({"app": "web"}), **limit)  # type: ignore[arg-type]  # one of two

    status = budget_status(spec, there, lambda _: (WEB.key, WEB.replicas))

    assert (status.desired, status.healthy, status.allowed) == (desired, healthy, allowed)


def test_pods_without_a_controller_count_for_a_number_but_want_nothing_for_a_percentage() -> None:
    number = BudgetSpec("shop", "web", LabelSelector.of({"app": "web"}), min_available=1)
    percent = replace(number, min_available="50%")

    assert budget_status(number, pods(2), lambda _: None).expected == 2
    assert budget_status(percent, pods(2), lambda _: None).allowed == 0


def test_a_budget_covers_its_own_namespace_only() -> None:
    spec = BudgetSpec("other", "web", LabelSelector.of({"app": "web"}), max_unavailable=1)

    assert budget_status(spec, pods(3), lambda _: (WEB.key, 3)).expected == 0


def test_names_are_the_same_every_time_and_differ_from_pod_to_pod() -> None:
    assert WEB.pod(1).name == WEB.pod(1).name != WEB.pod(2).name
    assert Workload("shop", "db", "StatefulSet").pod(7, ordinal=2).name == "db-2"


def test_actions_are_done_in_the_order_of_their_moments_and_then_of_their_asking() -> None:
    clock, done = VirtualClock(START), list[str]()
    clock.after(2 * SECOND, lambda: done.append("late"))
    clock.after(SECOND, lambda: done.append("first"))
    clock.after(SECOND, lambda: done.append("second"))

    clock.advance(START + 5 * SECOND)

    assert done == ["first", "second", "late"]
    assert clock.now() == START + 5 * SECOND


def test_an_action_sees_its_own_moment_and_may_ask_for_more_in_the_same_breath() -> None:
    clock, seen = VirtualClock(START), list[int]()

    def again() -> None:
        seen.append((clock.now() - START).seconds)
        if len(seen) < 3:
            clock.after(SECOND, again)

    clock.after(SECOND, again)
    clock.advance(START + 10 * SECOND)

    assert seen == [1, 2, 3]


def test_what_lies_in_the_past_is_done_now_and_what_is_due_at_the_end_is_done() -> None:
    clock, done = VirtualClock(START), list[str]()
    clock.at(START - 60 * SECOND, lambda: done.append("past"))
    clock.at(START + SECOND, lambda: done.append("end"))
    clock.at(START + 2 * SECOND, lambda: done.append("beyond"))

    clock.advance(START + SECOND)

    assert done == ["past", "end"]
    assert clock.next() == START + 2 * SECOND


def test_an_action_that_raises_is_not_done_again() -> None:
    clock = VirtualClock(START)

    def fail() -> None:
        raise RuntimeError

    clock.after(SECOND, fail)
    with pytest.raises(RuntimeError):
        clock.advance(START + 5 * SECOND)

    assert clock.now() == START + SECOND
    clock.advance(START + 5 * SECOND)
    assert clock.next() is None


def test_waiting_lets_the_time_pass() -> None:
    clock, condition = VirtualClock(START), threading.Condition()
    with condition:
        clock.wait(condition, 1.5)
        assert clock.now() == START + timedelta(seconds=1.5)
        clock.after(SECOND, lambda: None)
        clock.wait(condition, None)
    assert clock.now() == START + timedelta(seconds=2.5)
