"""The simulated cluster moves as a real one does: pods, nodes, budgets, evictions."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.errors import Conflict, NotFound, Rejected, TooManyRequests
from reconciler.model.node import Condition
from reconciler.model.ports import BudgetGone, Listed, PodGone
from reconciler.model.values import replace
from reconciler.simulation.workloads import Workload
from tests.simulation.building import budget, name, pods_of, web, world

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
