"""What is found about the pods of a node: why they stay, what refuses their eviction, what it costs."""

from __future__ import annotations

import pytest

from reconciler.model.moments import shifted
from reconciler.model.pod import Owner
from reconciler.model.values import replace
from tests.features.readiness.scene import budget, codes, judged, node, only, pod
from tests.support.builders import NOW, minutes

TWO = [pod("web-1"), pod("web-2")]
SKIP = "drain: {skipPods: [{selector: {app: web}}]}"
WAIT = "drain: {rules: [{name: batch, pods: {matchLabels: {app: web}}, behavior: WaitCompleted}]}"


def test_a_workload_without_an_obstacle_has_no_finding() -> None:
    found = judged(TWO, budget(allowed=1, desired=1, healthy=2, expected=2))

    assert found.workloads == ()
    assert (found.nodes, found.pods, found.blocked) == (2, 2, ())


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        pytest.param(
            {"desired": 2, "healthy": 2, "expected": 2}, "budgetNever", "never allows", id="all are required"
        ),
        pytest.param(
            {"desired": 3, "healthy": 2, "expected": 2}, "budgetNever", "never allows", id="too few replicas"
        ),
        pytest.param(
            {"desired": 2, "healthy": 2, "expected": 3}, "budgetNow", "has 2 of 3", id="one is unhealthy"
        ),
        pytest.param({}, "budgetUncounted", "counts no pods", id="its controller can't be scaled"),
    ],
)
def test_a_budget_that_allows_nothing_blocks(status: dict[str, int], code: str, words: str) -> None:
    found = judged(TWO, budget(**status))

    assert codes(found) == [(code, "blocks")]
    assert words in only(found).because
    assert only(found).about == ("shop/web",)
    assert found.blocked == ("a",)


def test_a_budget_that_allows_one_disruption_does_not_block() -> None:
    assert codes(judged(TWO, budget(allowed=1, desired=1, healthy=2, expected=2))) == []


def test_an_unready_pod_is_refused_only_without_always_allow() -> None:
    sick = [replace(one, ready=False) for one in TWO]
    held = budget(desired=2, healthy=1, expected=3)

    assert "AlwaysAllow" in only(judged(sick, held)).remedy
    assert codes(judged(sick, replace(held, unhealthy_always=True))) == []


def test_a_pod_under_two_budgets_blocks_even_if_both_allow_it() -> None:
    status = {"allowed": 1, "desired": 1, "healthy": 2, "expected": 2}
    found = judged(TWO, budget("web", **status), budget("all", **status))

    assert codes(found) == [("twoBudgets", "blocks")]
    assert only(found).about == ("shop/all", "shop/web")


def test_of_very_many_budgets_some_are_named() -> None:
    found = only(judged(TWO, *(budget(f"b{number}") for number in range(50))))

    assert "(shop/b0, shop/b1, shop/b2, shop/b3, shop/b4 and more)" in found.because
    assert len(found.about) == 10


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_budget_does_not_hold_a_pod_that_does_not_run(phase: str) -> None:
    pods = [replace(one, phase=phase) for one in TWO]

    assert codes(judged(pods, budget(desired=2, healthy=2, expected=2))) == []


def test_a_pod_with_local_storage_stays_and_the_setting_that_evicts_it_is_named() -> None:
    pods = [replace(one, empty_dir=True) for one in TWO]
    found = judged(pods)

    assert codes(found) == [("emptyDir", "outage")]
    assert "Set events.Reboot.emptyDir: Evict" in only(found).remedy
    assert found.blocked == ()
    assert codes(judged(pods, settings="events: {Reboot: {emptyDir: Evict}}")) == []


def test_the_setting_of_the_override_is_named_where_it_decides() -> None:
    override = "overrides: [{nodeSelector: {pool: x}, events: {Reboot: {emptyDir: Keep}}}]"
    pods = [replace(one, empty_dir=True) for one in TWO]
    found = judged(pods, nodes=(node("a", pool="x"), node("b")), settings=override)

    assert "Set overrides[0].events.Reboot.emptyDir: Evict" in only(found).remedy


def test_pods_without_a_controller_are_one_workload_of_their_namespace() -> None:
    pods = [replace(one, owner=None) for one in TWO]
    found = judged(pods)
    (workload,) = found.workloads

    assert (workload.workload.kind, workload.workload.name) == ("", "")
    assert only(found).pods == ("web-1", "web-2")
    assert "stays on the node" in only(found).because
    assert "set events.Reboot.unmanagedPods: Evict" in only(found).remedy


def test_a_pod_without_a_controller_that_is_evicted_does_not_come_back() -> None:
    pods = [replace(one, owner=None) for one in TWO]
    found = judged(pods, settings="events: {Reboot: {unmanagedPods: Evict}}")

    assert codes(found) == [("unmanaged", "outage")]
    assert "nothing creates it again" in only(found).because


def test_a_pod_that_a_rule_skips_stays() -> None:
    found = judged(TWO, settings=SKIP)

    assert codes(found) == [("skipped", "outage")]
    assert only(found).because.startswith("rule drain.skipPods[0] says to skip it")


@pytest.mark.parametrize("settings", ["", "drain: {podsMayWait: 0s}"])
def test_a_pod_that_its_own_label_skips_stays(settings: str) -> None:
    label = {"node-maintenance.dev/drain": "skip", "app": "web", "pod-template-hash": "6b7f"}
    found = judged([replace(one, labels=label) for one in TWO], settings=settings)

    assert codes(found) == [("skipped", "outage")]
    assert only(found).remedy == "Remove this from the pod, so that a drain evicts it."


def test_a_pod_for_which_a_drain_waits_is_a_notice() -> None:
    assert codes(judged(TWO, settings=WAIT)) == [("waits", "notice")]


def test_a_pod_whose_own_label_asks_to_wait_is_a_notice_with_the_limit() -> None:
    label = {"node-maintenance.dev/drain": "wait-completed", "app": "web", "pod-template-hash": "6b7f"}
    found = judged([replace(one, labels=label) for one in TWO])

    assert codes(found) == [("waits", "notice")]
    assert "drain.podsMayWait" in only(found).because


def test_a_pod_that_asks_an_autoscaler_to_finish_is_a_notice_with_the_limit() -> None:
    found = judged([replace(one, annotations={"karpenter.sh/do-not-disrupt": "true"}) for one in TWO])

    assert codes(found) == [("waits", "notice")]
    assert only(found).because.startswith("its annotation karpenter.sh/do-not-disrupt=true says")
    assert "drain.podsMayWait" in only(found).because


def test_a_pod_that_is_terminating_is_no_finding() -> None:
    leaving = [replace(one, deleting_until=shifted(NOW, minutes(1))) for one in TWO]

    assert codes(judged(leaving, budget(desired=2, healthy=2, expected=2))) == []


def test_pods_of_daemon_sets_and_static_pods_are_no_finding() -> None:
    agent = replace(pod("agent"), owner=Owner("DaemonSet", "agent", "apps/v1"))
    static = replace(pod("proxy"), annotations={"kubernetes.io/config.mirror": "x"}, owner=None)

    assert codes(judged([agent, static])) == []
    assert codes(judged([agent], settings="drain: {ignoreDaemonSets: false}")) == [("daemonSet", "notice")]


def test_the_only_pod_of_a_workload_is_a_notice_wherever_the_others_run() -> None:
    assert codes(judged([pod()])) == [("singleton", "notice")]
    assert codes(judged([pod(), pod("web-2", "b")])) == []
    assert codes(judged([pod(), pod("web-2", "b", phase="Succeeded")])) == [("singleton", "notice")]


def test_the_only_pod_of_a_job_is_no_singleton() -> None:
    assert codes(judged([replace(pod(), owner=Owner("Job", "import", "batch/v1"))])) == []


def test_a_singleton_that_is_restarted_instead_does_not_block() -> None:
    never = budget(desired=1, healthy=1, expected=1)
    restarts = "drain: {restartSingletons: true}"

    assert codes(judged([pod()], never)) == [("budgetNever", "blocks"), ("singleton", "notice")]
    assert codes(judged([pod()], never, settings=restarts)) == [("singleton", "notice")]
    assert "restarted instead" in only(judged([pod()], never, settings=restarts)).because


def test_a_singleton_with_a_volume_may_not_be_restarted_so_it_blocks() -> None:
    found = judged(
        [pod(claims=("data",))],
        budget(desired=1, healthy=1, expected=1),
        settings="drain: {restartSingletons: true}",
    )

    assert codes(found) == [("budgetNever", "blocks"), ("singleton", "notice")]
