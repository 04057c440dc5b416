"""What a drain takes, what it leaves, and whose cordon stays."""

from __future__ import annotations

import pytest

from reconciler.features.events.kubernetes_events import COMPONENT
from reconciler.model.outside import Self
from tests.real.passes.processes import Programs
from tests.real.passes.scene import PREFIX, Scene
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import budget, daemon_set, pod

EMPTY_DIR = [{"name": "scratch", "emptyDir": {}}]


def cover(scene: Scene, app: str) -> None:
    """Let a PodDisruptionBudget hold the app's only pod."""
    scene.api.create("poddisruptionbudgets", budget(app, min_available=1))
    wait_for(
        "a budget that was counted",
        lambda: scene.api.get("poddisruptionbudgets", app).get("status", {}).get("currentHealthy") == 1,
    )


def test_a_cordon_that_was_there_before_us_stays_after_us(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node(0)
    scene.workload_on(node)
    scene.condition_tells(node)
    scene.finish()
    assert scene.pods_on(node) == []

    scene.condition_silent(node)
    scene.run()

    assert scene.cordoned(node)
    assert scene.record(node) is None
    assert scene.state(node) is None


@pytest.mark.slow
def test_a_sweep_leaves_what_a_budget_holds_names_the_budget_and_the_next_sweep_finishes(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.workload("shop", node)
    cover(scene, "web")
    scene.condition_tells(node)

    first = programs.sweep("--for", "4s")

    assert first.code == 0, first.err
    assert scene.pods_on(node) == ["web"]
    (blocker,) = first.node(node)["drain"]["blockers"]
    assert blocker["budget"] == "default/web"
    assert blocker["because"] == "waits for PDB default/web: needs 1 healthy, has 1"
    assert any("default/web" in hold["reason"] for hold in first.node(node)["holds"])

    scene.api.delete("poddisruptionbudgets", "web", "default")
    second = programs.sweep("--for", "30s")

    assert second.code == 0, second.err
    assert scene.pods_on(node) == []
    record = scene.record(node)
    assert record is not None
    assert "done" in record["drain"]
    assert record["drain"]["attempt"] == 1


@pytest.mark.slow
def test_the_text_of_a_sweep_names_what_blocks_it(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    scene.condition_tells(node)

    done = programs.run("sweep", "--for", "4s")

    assert done.code == 0, done.err
    assert "waits for PDB default/web: needs 1 healthy, has 1" in done.out


def test_a_pod_that_is_kept_keeps_only_itself(scene: Scene) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.workload("cache", node, volumes=EMPTY_DIR)
    scene.api.create("pods", pod("lonely", node_name=node))
    scene.condition_tells(node, "Reboot")

    report = scene.finish()

    assert scene.pods_on(node) == ["cache", "lonely"]
    kept = {blocker["pod"]: blocker["because"] for blocker in report.node(node)["kept"]}
    assert {name.split("/")[1].split("-")[0] for name in kept} == {"cache", "lonely"}
    assert all(f"{name}: {because}" in report.text for name, because in kept.items())
    record = scene.record(node)
    assert record is not None
    assert "done" in record["drain"]


def test_what_would_be_lost_anyway_is_evicted_as_the_kind_says(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 2}")
    redeployed, preempted = scene.node(0), scene.node(1)
    for number, node in enumerate((redeployed, preempted)):
        scene.workload(f"cache{number}", node, volumes=EMPTY_DIR)
        scene.api.create("pods", pod(f"lonely{number}", node_name=node))
    scene.condition_tells(redeployed, "Redeploy")
    scene.condition_tells(preempted, "Preempt", minutes=0.5)

    scene.finish()

    assert scene.pods_on(redeployed) == ["lonely0"]
    assert scene.pods_on(preempted) == []


def test_pods_of_a_daemon_set_stay(scene: Scene) -> None:
    node = scene.node()
    scene.api.create("daemonsets", daemon_set("log"))
    wait_for("a daemon pod", lambda: scene.ready("log", 1))
    scene.workload("web", node)
    scene.condition_tells(node)

    scene.finish()

    assert scene.pods_on(node) == ["log"]


def test_pods_that_the_settings_skip_stay(scene: Scene) -> None:
    scene.set("drain: {skipPods: [{selector: {app: cache}}]}")
    node = scene.node()
    scene.workload("web", node)
    scene.workload("cache", node)
    scene.condition_tells(node)

    scene.finish()

    assert scene.pods_on(node) == ["cache"]


def test_no_more_nodes_are_drained_at_once_than_the_settings_say(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 3}\ndrain: {maxConcurrentNodes: 1}")
    first, second = scene.node(0), scene.node(1)
    for node, app in ((first, "web"), (second, "shop")):
        scene.workload(app, node)
        cover(scene, app)
        scene.condition_tells(node)

    report = scene.run()

    # All are cordoned before the first is drained, so that pods don't move twice.
    assert scene.cordoned(first)
    assert scene.cordoned(second)
    assert report.actions(first) == ["cordon", "drain"]
    assert report.actions(second) == ["cordon"]
    assert "drain.maxConcurrentNodes" in report.holds(second)["drainSlot"]


def test_a_drain_that_takes_too_long_is_reported_and_tried_again(scene: Scene) -> None:
    scene.set("drain: {timeout: 10m}")
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    scene.condition_tells(node, minutes=5)
    scene.run()

    scene.clock.advance(minutes=10, seconds=1)
    scene.condition_tells(node, minutes=-5.02)
    scene.run()

    record = scene.record(node)
    assert record is not None
    assert record["drain"]["attempt"] == 2
    # The scheduler and the API server may warn of something else meanwhile.
    warnings = [
        event
        for event in scene.api.list("events", "default")
        if event["type"] == "Warning" and event["reportingComponent"] == COMPONENT
    ]
    assert [event["reason"] for event in warnings] == ["MaintenanceDrainTimedOut"]
    scene.api.delete("poddisruptionbudgets", "web", "default")
    scene.finish()
    assert scene.pods_on(node) == []


def test_the_node_that_we_run_on_is_drained_last_and_our_own_pod_goes_last(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 2}")
    own, other = scene.node(0), scene.node(1)
    (ours,) = scene.workload("reconciler", own)
    scene.workload("web", other)
    cover(scene, "web")
    scene.itself = Self(node=own, pod=f"default/{ours}")
    scene.condition_tells(own, minutes=1)
    scene.condition_tells(other, minutes=5)

    report = scene.run()

    assert scene.cordoned(other)
    assert "the reconciler runs on it" in report.holds(own)["othersFirst"]
    assert scene.pods_on(own) == ["reconciler"]

    scene.api.delete("poddisruptionbudgets", "web", "default")
    scene.finish()

    assert scene.pods_on(other) == scene.pods_on(own) == []


def test_a_node_with_our_ignore_label_is_ignored(scene: Scene) -> None:
    node = scene.node(labels={f"{PREFIX}/ignore": "true"})
    scene.condition_tells(node)

    report = scene.run()

    assert scene.is_untouched(node)
    assert "ignore" in report.holds(node)["lookedAfter"]
