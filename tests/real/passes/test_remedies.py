"""Each remedy for a PodDisruptionBudget that the program prints, followed on the API server: it helps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.webhooks import rehearsed
from tests.support.controlplane.workloads import budget, deployment, pod

Object = dict[str, Any]
Act = Callable[[Scene], object]

NUMBER = "Run more replicas than it requires, or let it allow one disruption (maxUnavailable: 1)"
ALLOW = "Let it allow one disruption (maxUnavailable: 1)"
COUNTABLE = "Let the PodDisruptionBudget require a number of pods (minAvailable: 1"
REPAIR = "repair the pods that are not healthy"
UNHEALTHY = "Set unhealthyPodEvictionPolicy: AlwaysAllow on the PodDisruptionBudget."


def _condition(scene: Scene, name: str, status: str) -> None:
    body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    scene.api.patch("pods", name, body, "default", kind="strategic", subresource="status")


def _pods(scene: Scene) -> list[str]:
    return sorted(one["metadata"]["name"] for one in scene.api.list("pods", labels="app=web"))


def _web(replicas: int, *, unready: int = 0, **limit: int | str) -> Act:
    """A Deployment of which the last pods by name are not ready, and its budget."""

    def make(scene: Scene) -> None:
        pods = sorted(scene.workload("web", replicas=replicas))
        for name in pods[replicas - unready :]:
            _condition(scene, name, "False")
        scene.api.create("poddisruptionbudgets", budget("web", **limit))  # type: ignore[arg-type]

        def counted() -> bool:
            status = scene.api.get("poddisruptionbudgets", "web").get("status", {})
            return (status.get("expectedPods"), status.get("currentHealthy")) == (
                replicas,
                replicas - unready,
            )

        wait_for("a counted budget", counted)

    return make


def _unscalable(scene: Scene) -> None:
    """Two pods of a controller that can't be scaled, and a budget that would have to ask it."""
    made = scene.api.create("configmaps", {"metadata": {"name": "controller", "namespace": "default"}})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "controller", "controller": True}
    for name in ("web-1", "web-2"):
        one = pod(name, node_name=_node(scene), labels={"app": "web"})
        one["metadata"]["ownerReferences"] = [{**owner, "uid": made["metadata"]["uid"]}]
        scene.api.create("pods", one)
    wait_for("ready pods", lambda: scene.ready("web", 2))
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=1))

    def failed() -> bool:
        status = scene.api.get("poddisruptionbudgets", "web").get("status", {})
        return any(one["reason"] == "SyncFailed" for one in status.get("conditions", []))

    wait_for("a budget that can't be counted", failed)


def _nodes(scene: Scene) -> list[str]:
    return [str(node["metadata"]["name"]) for node in scene.api.list("nodes")]


def _node(scene: Scene) -> str:
    return _nodes(scene)[0]


def _limit(**spec: int | str | None) -> Act:
    """Change the budget; a limit that is not named goes."""
    body = {"minAvailable": None, "maxUnavailable": None, **spec}
    return lambda scene: scene.api.patch("poddisruptionbudgets", "web", {"spec": body}, "default")


def _scale(replicas: int) -> Act:
    return lambda scene: scene.api.patch("deployments", "web", {"spec": {"replicas": replicas}}, "default")


def _policy(scene: Scene) -> None:
    spec = {"unhealthyPodEvictionPolicy": "AlwaysAllow"}
    scene.api.patch("poddisruptionbudgets", "web", {"spec": spec}, "default")


def _repaired(scene: Scene) -> None:
    for name in _pods(scene):
        _condition(scene, name, "True")


def _both(*acts: Act) -> Act:
    return lambda scene: [act(scene) for act in acts]


def _two(scene: Scene) -> None:
    _web(2, max_unavailable=1)(scene)
    second = budget("web", max_unavailable=1)
    scene.api.create("poddisruptionbudgets", {**second, "metadata": {"name": "all", "namespace": "default"}})


def _one_selects(scene: Scene) -> None:
    selector = {"matchLabels": {"app": "others"}}
    scene.api.patch("poddisruptionbudgets", "all", {"spec": {"selector": selector}}, "default")


def _cordon(scene: Scene, *, cordoned: bool) -> None:
    scene.api.patch("nodes", sorted(_nodes(scene))[-1], {"spec": {"unschedulable": cordoned or None}})


def _placed_nowhere(scene: Scene) -> None:
    """Two pods that have to be on two nodes, of which one is cordoned."""
    scene.node(1)
    _cordon(scene, cordoned=True)
    made = deployment("web", 2)
    made["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "DoNotSchedule"
    scene.api.create("deployments", made)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=1))

    def waits() -> bool:
        status = scene.api.get("poddisruptionbudgets", "web").get("status", {})
        conditions = [
            one.get("status", {}).get("conditions", []) for one in scene.api.list("pods", labels="app=web")
        ]
        reasons = {each.get("reason") for one in conditions for each in one}
        return "Unschedulable" in reasons and status.get("currentHealthy") == 1

    wait_for("a pod that the scheduler places nowhere", waits, seconds=30)


ONE_EACH = "Change the selectors, so that one PodDisruptionBudget selects each pod."


@pytest.mark.parametrize(
    ("make", "code", "remedy", "follow"),
    [
        pytest.param(_web(1, min_available=1), "budgetNever", NUMBER, _scale(2), id="more replicas"),
        pytest.param(
            _web(1, min_available=1), "budgetNever", NUMBER, _limit(maxUnavailable=1), id="another limit"
        ),
        pytest.param(
            _web(2, max_unavailable=0), "budgetNever", ALLOW, _limit(maxUnavailable=1), id="none may go"
        ),
        pytest.param(
            _web(2, min_available="100%"), "budgetNever", ALLOW, _limit(maxUnavailable=1), id="all must stay"
        ),
        pytest.param(
            _web(2, unready=1, min_available=2),
            "budgetNever",
            f"{NUMBER}, and {REPAIR}.",
            _both(_limit(maxUnavailable=1), _repaired),
            id="all must stay and one is unhealthy",
        ),
        pytest.param(
            _web(1, unready=1, min_available=1), "budgetNever", UNHEALTHY, _policy, id="the only one"
        ),
        pytest.param(
            _web(2, unready=2, min_available=1),
            "budgetNow",
            "set unhealthyPodEvictionPolicy: AlwaysAllow on the PodDisruptionBudget.",
            _policy,
            id="all are unhealthy",
        ),
        pytest.param(
            _web(2, unready=1, min_available=1),
            "budgetNow",
            "Repair the pods that are not healthy",
            _repaired,
            id="another one is unhealthy",
        ),
        pytest.param(
            _unscalable, "budgetUncounted", COUNTABLE, _limit(minAvailable=1), id="can't be counted"
        ),
        pytest.param(
            _placed_nowhere,
            "budgetNow",
            "Add or uncordon a node on which it can run",
            partial(_cordon, cordoned=False),
            id="another one has no node",
        ),
        pytest.param(_two, "twoBudgets", ONE_EACH, _one_selects, id="two budgets"),
    ],
)
def test_a_remedy_that_is_followed_lets_the_pod_go(
    scene: Scene, programs: Programs, make: Act, code: str, remedy: str, follow: Act
) -> None:
    scene.node(0)
    make(scene)
    done = programs.run("readiness", "--output", "json")
    (said,) = (
        one
        for each in done.document["workloads"]
        for one in each["findings"]
        if one["code"] == code and remedy in one["remedy"]
    )
    assert said["severity"] == "blocks"

    follow(scene)
    # Any of its pods: `rehearsed` asks about the first.
    wait_for("an eviction that is allowed", lambda: rehearsed(scene.api, "web") == "", seconds=30)


def test_a_budget_that_cannot_be_counted_says_why_itself(scene: Scene, programs: Programs) -> None:
    node = scene.node(0)
    _unscalable(scene)
    scene.annotate(node, "request", '{"kind": "Reboot"}')
    programs.configure("mode: Enforce\n")

    ahead = programs.run("readiness", "--output", "json")
    done = programs.sweep("--for", "15s")
    explained = programs.run("explain", "default/web-1", "--config", str(programs.config))

    message = "does not implement the scale subresource"
    (said,) = (one for each in ahead.document["workloads"] for one in each["findings"] if one["about"])
    holds = [one["reason"] for one in done.node(node)["holds"] if one["check"] == "drain"]
    assert message in said["because"]
    assert len(holds) == 2
    assert all(message in reason for reason in holds), holds
    assert message in explained.out
