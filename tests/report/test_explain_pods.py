"""A pod: whether a drain would evict it, what refuses that, when, and whom to ask."""

from __future__ import annotations

import pytest

from reconciler.drain.workloads import owner_of
from reconciler.model.plan import Preview
from reconciler.model.pod import Owner
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.report.explain import find_pod, owner_labels
from reconciler.simulation.workloads import BudgetSpec
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import DRAIN_NOW, REQUEST
from tests.support.worlds import world_of

ASKED = {REQUEST: DRAIN_NOW}
RULE = "drain: {rules: [{name: batch, pods: {}, behavior: Skip}]}"


def test_a_pod_that_goes_says_so() -> None:
    found = Explained(world_of([builders.node(annotations=ASKED)], [builders.pod()])).pod()

    assert (found.verdict.action, found.refused, found.obstacles) == ("evict", None, ())
    assert found.owner == "ReplicaSet shop/owner"


def test_a_budget_that_refuses_now_is_named_with_its_numbers() -> None:
    world = world_of([builders.node()], [builders.pod()])
    world.cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, max_unavailable=0))

    found = Explained(world).pod()

    assert found.verdict.action == "evict"
    assert found.refused is not None
    assert found.refused.budget == "shop/web"
    assert [(one.key, one.allowed) for one in found.budgets] == [("shop/web", 0)]
    assert found.obstacles[0].who.startswith("the owner of ReplicaSet shop/owner: run more replicas")


@pytest.mark.parametrize(
    ("settings", "shape", "action", "said"),
    [
        ("", {"empty_dir": True}, "keep", "to evict it, set events.Reboot.emptyDir: Evict"),
        ("", {"owner": ""}, "keep", "to evict it, set events.Reboot.unmanagedPods: Evict"),
        (RULE, {}, "skip", "rule batch says to skip it"),
        ("", {"owner": "DaemonSet"}, "skip", "ignoring DaemonSet-managed Pods"),
    ],
)
def test_a_pod_that_stays_says_which_rule_keeps_it_and_whom_to_ask(
    settings: str, shape: dict[str, object], action: str, said: str
) -> None:
    pod = builders.pod(**shape)  # type: ignore[arg-type]
    found = Explained(world_of([builders.node(annotations=ASKED)], [pod]), settings).pod()

    assert found.verdict.action == action
    assert said in "; ".join(found.verdict.reasons)
    assert said in found.obstacles[0].because
    assert found.obstacles[0].who.endswith(", or the owner of the settings")


@pytest.mark.parametrize(
    ("node", "said"), [("", "it is on no node"), ("gone", "its node gone no longer exists")]
)
def test_a_pod_whose_node_does_not_exist_is_concerned_by_no_drain(node: str, said: str) -> None:
    world = world_of([builders.node()], [replace(builders.pod(on=node), phase="Pending", ready=False)])

    found = Explained(world).pod()

    assert (found.verdict.action, found.verdict.reasons) == ("none", (said,))


def test_a_pod_whose_preview_breaks_the_program_is_not_taken_for_one_that_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explained = Explained(world_of([builders.node()], [builders.pod()]))

    def broken(*_: object) -> Preview:
        raise ZeroDivisionError("no")

    monkeypatch.setattr("reconciler.report.explain.prospect.preview", broken)

    assert explained.pod().verdict.action == "unknown"
    assert "shop/web-1 on a: what a drain of its node does with it is not known\n" in explained.text(
        pod="web-1"
    )


def test_a_pod_is_found_by_namespace_and_name() -> None:
    world = world_of([builders.node()], [builders.pod(), builders.pod(namespace="other")])
    seen = Explained(world).found.snapshot

    found = find_pod(seen, "other", "web-1")
    assert found is not None
    assert found.namespace == "other"
    assert find_pod(seen, "shop", "web-2") is None


def test_the_owner_is_the_workload_in_words() -> None:
    owner = Owner("ReplicaSet", "web-5c84", "apps/v1")
    pod = replace(builders.pod(), owner=owner, labels={"pod-template-hash": "5c84"})

    assert owner_of(pod) == "Deployment shop/web"
    assert owner_of(builders.pod(owner="")) == ""


def test_a_hostile_owner_is_cut() -> None:
    pod = replace(builders.pod(), owner=Owner("K" * 1000, "n" * 100_000))

    assert len(owner_of(pod)) < 600


def test_labels_that_name_a_team_are_shown_up_to_a_limit() -> None:
    labels = {
        "app": "web",
        "app.kubernetes.io/managed-by": "Helm",
        "example.com/team": "shop",
        "owner": "kim",
        "team": "",
    }
    many = {f"t{number:03}.example.com/team": "x" for number in range(100)}

    assert owner_labels(replace(builders.pod(), labels=labels)) == (
        ("app.kubernetes.io/managed-by", "Helm"),
        ("example.com/team", "shop"),
        ("owner", "kim"),
    )
    assert len(owner_labels(replace(builders.pod(), labels=many))) == 8
