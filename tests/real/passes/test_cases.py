"""The life of a case: events that change, are cancelled, or go; nodes that vanish; people who step in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.real.passes.scene import Scene, cover
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget, daemon_set, deployment

Object = dict[str, Any]

ID = "11111111-AAAA-4000-8000-000000000001"


def test_a_whole_case_from_its_first_event_to_the_uncordon(scene: Scene) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node, event_id=ID)
    scene.finish()
    assert scene.pods_on(node) == []

    # Started is not gone: with the node still out, nothing is undone.
    scene.condition_tells(node, status="Started", event_id=ID)
    assert "Reboot (Started)" in scene.run().holds(node)["eventsGone"]
    scene.condition(node, "Ready", "False")
    scene.condition_silent(node)
    assert "NotReady" in scene.run().holds(node)["nodeReady"]
    scene.condition(node, "Ready", "True")
    report = scene.run()
    assert set(report.holds(node)) == {"eventsGone", "nodeReady"}
    assert "the node settles for" in report.holds(node)["eventsGone"]
    assert scene.cordoned(node)

    scene.clock.advance(minutes=2, seconds=1)
    scene.condition_silent(node)
    report = scene.run()

    assert report.actions(node) == ["uncordon"]
    assert scene.is_untouched(node)
    reasons = [event["reason"] for event in scene.api.list("events", "default")]
    assert sorted(one for one in reasons if one.startswith("Maintenance")) == [
        "MaintenanceCordon",
        "MaintenanceDone",
        "MaintenanceDrained",
    ]


def test_pods_of_daemon_sets_are_evicted_once_where_the_settings_say_so(scene: Scene) -> None:
    scene.set("drain: {ignoreDaemonSets: false}")
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    scene.api.create("daemonsets", daemon_set("agent"))
    (before,) = wait_for("the pod of the DaemonSet", lambda: scene.ready("agent", 1), seconds=60)
    # A pod that is younger than the drain would be one that came back.
    scene.clock.set(datetime.now(UTC))
    scene.condition_tells(node, event_id=ID)

    def kept() -> list[Object]:
        found = list(scene.run().node(node).get("kept", []))
        scene.drainer.wait(0.5)
        return found

    # Its next pod comes some time after the eviction. Until then, the budget of another pod keeps the drain.
    (pod,) = wait_for("its next pod, which is kept", kept, seconds=60)
    assert pod["because"] == "comes back because it tolerates the cordon"
    scene.api.delete("poddisruptionbudgets", "web")
    scene.finish()

    (after,) = wait_for("its next pod, Ready", lambda: scene.ready("agent", 1), seconds=60)
    assert pod["pod"] == f"default/{after}"
    assert after != before


def test_a_pod_without_a_node_is_named_where_it_keeps_a_budget_from_an_eviction(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 2}")
    nodes = [scene.node(number) for number in range(3)]
    made = deployment("web", 3)
    # The cordoned node counts as one without a pod, so the next pod fits on no other.
    made["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "DoNotSchedule"
    scene.deploy(made)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=1))
    for node in nodes[:2]:
        scene.annotate(node, "request", '{"kind": "Reboot"}')

    def said() -> str:
        report = scene.run()
        reasons = [report.holds(node).get("drain", "") for node in nodes[:2]]
        return next((one for one in reasons if "has no node" in one), "")

    reason = wait_for("the cause of the block", said, seconds=40, every=0.5)
    (unplaced,) = scene.api.list("pods", fields="spec.nodeName=", labels="app=web")
    assert f"default/{unplaced['metadata']['name']}, which it counts, has no node: 0/3 nodes" in reason
    assert "topology spread" in reason
