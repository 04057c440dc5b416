"""What is found about the pods of a node: why they stay, what refuses their eviction, what it costs."""

from __future__ import annotations

import pytest

from reconciler.model.moments import shifted
from reconciler.model.pod import Owner, PodSpec
from reconciler.model.values import replace
from tests.features.readiness.scene import budget, codes, judged, node, only, pod
from tests.support.builders import NOW, minutes

TWO = [pod("web-1"), pod("web-2")]
EVICT = "events: {Reboot: {unmanagedPods: Evict}}"
NO_WAIT = "drain: {podsMayWait: 0s}"
RESTART = "drain: {restartSingletons: true}"
KARPENTER: dict[str, object] = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
SKIP = "drain: {skipPods: [{selector: {app: web}}]}"
WAIT = "drain: {rules: [{name: batch, pods: {matchLabels: {app: web}}, behavior: WaitCompleted}]}"


NEVER = budget(desired=2, healthy=2, expected=2)


def own(word: str) -> dict[str, object]:
    """The labels of a pod that says this itself."""
    return {"labels": {"node-maintenance.dev/drain": word, "app": "web", "pod-template-hash": "6b7f"}}


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        ({"desired": 2, "healthy": 2, "expected": 2}, "budgetNever", "never allows"),
        ({"desired": 3, "healthy": 2, "expected": 2}, "budgetNever", "never allows"),
        ({"desired": 2, "healthy": 2, "expected": 3}, "budgetNow", "has 2 of 3"),
        ({}, "budgetUncounted", "counts no pods"),
    ],
    ids=["all are required", "too few replicas", "one is unhealthy", "its controller can't be scaled"],
)
def test_a_budget_that_allows_nothing_blocks(status: dict[str, int], code: str, words: str) -> None:
    found = judged(TWO, budget(**status))

    assert codes(found) == [(code, "blocks")]
    assert words in only(found).because
    assert only(found).about == ("shop/web",)
    assert found.blocked == ("a",)


def test_an_unready_pod_is_refused_only_without_always_allow() -> None:
    sick = [replace(one, ready=False) for one in TWO]
    held = budget(desired=2, healthy=1, expected=3)

    assert "AlwaysAllow" in only(judged(sick, held)).remedy
    assert codes(judged(sick, replace(held, unhealthy_always=True))) == []


def test_a_budget_that_waits_for_a_pod_that_the_scheduler_places_nowhere_names_it() -> None:
    waiting = pod("web-3", "", phase="Pending", ready=False, unplaced="0/2 nodes are available")

    found = only(judged([*TWO, waiting], budget(desired=2, healthy=2, expected=3)))

    assert found.because.endswith("; shop/web-3, which it counts, has no node: 0/2 nodes are available")
    assert found.remedy.startswith("Add or uncordon a node")


def test_a_budget_that_its_controller_cannot_count_says_why_whatever_its_last_count_was() -> None:
    found = only(
        judged(TWO, replace(budget(desired=1, healthy=2, expected=2), failed="no scale subresource"))
    )

    assert found.code == "budgetUncounted"
    assert "no scale subresource" in found.because
    assert "minAvailable: 1" in found.remedy


@pytest.mark.parametrize(
    ("ready", "healthy", "help_", "remedy"),
    [
        (False, 0, True, "Set unhealthyPodEvictionPolicy: AlwaysAllow on the PodDisruptionBudget."),
        (True, 2, False, "Let it allow one disruption (maxUnavailable: 1)."),
        (
            True,
            1,
            False,
            "Let it allow one disruption (maxUnavailable: 1), and repair the pods that are not healthy.",
        ),
    ],
    ids=["unready", "replicas do not help", "another one is unhealthy"],
)
def test_a_budget_that_never_allows_has_the_remedy_that_helps(
    *, ready: bool, healthy: int, help_: bool, remedy: str
) -> None:
    never = replace(budget(desired=2, healthy=healthy, expected=2), more_replicas_help=help_)
    found = only(judged([replace(one, ready=ready) for one in TWO], never))

    assert (found.code, found.remedy) == ("budgetNever", remedy)


def test_a_pod_under_two_budgets_blocks_even_if_both_allow_it() -> None:
    status = {"allowed": 1, "desired": 1, "healthy": 2, "expected": 2}
    found = judged(TWO, budget("web", **status), budget("all", **status))

    assert codes(found) == [("twoBudgets", "blocks")]
    assert only(found).about == ("shop/all", "shop/web")


def test_of_very_many_budgets_some_are_named() -> None:
    found = only(judged(TWO, *(budget(f"b{number}") for number in range(50))))

    assert "(shop/b0, shop/b1, shop/b2, shop/b3, shop/b4 and more)" in found.because
    assert len(found.about) == 10


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "Pending"},
        {"phase": "Succeeded"},
        {"phase": "Failed"},
        {"deleting_until": shifted(NOW, minutes(1))},
    ],
)
def test_a_budget_does_not_hold_a_pod_that_does_not_run_or_is_going(changes: dict[str, object]) -> None:
    assert codes(judged([replace(each, **changes) for each in TWO], NEVER)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "settings", "code", "because", "remedy"),
    [
        (
            {"spec": PodSpec(empty_dir=True)},
            "",
            "emptyDir: outage",
            "local storage",
            "Set events.Reboot.emptyDir: Evict",
        ),
        ({"owner": None}, "", "unmanaged: outage", "stays on", "set events.Reboot.unmanagedPods: Evict"),
        ({"owner": None}, EVICT, "unmanaged: outage", "nothing creates it again", "Give it a controller"),
        ({}, SKIP, "skipped: outage", "rule drain.skipPods[0] says to skip it", "drain.skipPods"),
        (own("skip"), "", "skipped: outage", "", "Remove this from the pod, so that a drain evicts it."),
        (own("skip"), NO_WAIT, "skipped: outage", "", "Remove this from the pod, so that a drain evicts"),
        ({}, WAIT, "waits: notice", "", "Change the rule in drain.rules"),
        (own("wait-completed"), "", "waits: notice", "drain.podsMayWait", "Remove this from the pod"),
        (KARPENTER, "", "waits: notice", "annotation karpenter.sh/do-not-disrupt=true says", "Remove this"),
        (KARPENTER, "", "waits: notice", "drain.podsMayWait", "Remove this from the pod"),
    ],
)
def test_a_pod_that_stays_says_why_and_what_would_let_it_go(
    changes: dict[str, object], settings: str, code: str, because: str, remedy: str
) -> None:
    found = judged([replace(each, **changes) for each in TWO], settings=settings)  # type: ignore[arg-type]

    assert [": ".join(pair) for pair in codes(found)] == [code]
    assert (because in only(found).because, remedy in only(found).remedy) == (True, True)
    assert (only(found).pods, found.blocked) == (("web-1", "web-2"), ())


def test_a_setting_evicts_pods_with_local_storage() -> None:
    pods = [replace(each, spec=PodSpec(empty_dir=True)) for each in TWO]

    assert codes(judged(pods, settings="events: {Reboot: {emptyDir: Evict}}")) == []


def test_the_setting_of_the_override_is_named_where_it_decides() -> None:
    override = "overrides: [{nodeSelector: {pool: x}, events: {Reboot: {emptyDir: Keep}}}]"
    pods = [replace(one, spec=PodSpec(empty_dir=True)) for one in TWO]
    found = judged(pods, nodes=(node("a", pool="x"), node("b")), settings=override)

    assert "Set overrides[0].events.Reboot.emptyDir: Evict" in only(found).remedy


def test_pods_of_daemon_sets_and_static_pods_are_no_finding() -> None:
    agent = replace(pod("agent"), owner=Owner("DaemonSet", "agent", "apps/v1"))
    static = replace(pod("proxy"), annotations={"kubernetes.io/config.mirror": "x"}, owner=None)

    assert codes(judged([agent, static])) == []


def test_the_only_pod_of_a_workload_is_a_notice_wherever_the_others_run() -> None:
    assert codes(judged([pod()])) == [("singleton", "notice")]
    assert codes(judged([pod(), pod("web-2", "b")])) == []
    assert codes(judged([pod(), pod("web-2", "b", phase="Succeeded")])) == [("singleton", "notice")]
    assert codes(judged([replace(pod(), owner=Owner("Job", "import", "batch/v1"))])) == []


def test_a_singleton_without_a_volume_that_is_restarted_instead_does_not_block() -> None:
    never = budget(desired=1, healthy=1, expected=1)
    restarted = judged([pod()], never, settings=RESTART)
    blocks = [("budgetNever", "blocks"), ("singleton", "notice")]

    assert codes(restarted) == [("singleton", "notice")]
    assert "restarted instead" in only(restarted).because
    assert codes(judged([pod()], never)) == blocks
    assert codes(judged([pod(spec=PodSpec(claims=("data",)))], never, settings=RESTART)) == blocks
