"""Beside other tools that cordon, drain and delete nodes, and beside the node agent's own troubles."""

from __future__ import annotations

import json

from tests.real.passes.scene import LIVE_MIGRATION, Scene
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import daemon_set

REMEDIATOR = {"key": "remediator.kubernetes.azure.com/unschedulable", "effect": "NoSchedule"}
AUTOSCALER = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}


def mechanic(scene: Scene, instance: int) -> str:
    """A node that mechanic has cordoned."""
    return scene.node(instance, unschedulable=True, labels={"mechanic.cordoned": "true"})


def taint(scene: Scene, node: str, *taints: object) -> None:
    spec = scene.api.get("nodes", node)["spec"]
    kept = [one for one in spec.get("taints", []) if one["key"] == "node.kubernetes.io/unschedulable"]
    scene.api.patch("nodes", node, {"spec": {"taints": [*kept, *taints]}})


def test_mechanics_cordon_is_adopted_drained_and_undone(scene: Scene) -> None:
    scene.set("adopt: [mechanic]\nuncordon: {settle: 0s}")
    node = mechanic(scene, 0)
    scene.uncordon(node)
    scene.workload("web", node)
    scene.api.patch("nodes", node, {"spec": {"unschedulable": True}})
    scene.condition_tells(node)

    scene.finish()

    assert "mechanic.cordoned" not in scene.api.get("nodes", node)["metadata"]["labels"]
    assert scene.pods_on(node) == []
    record = scene.record(node)
    assert record is not None
    assert record["cordon"]["whose"] == "adopted:mechanic"

    scene.condition_silent(node)
    scene.run()

    assert scene.is_untouched(node)


def test_mechanics_cordon_without_an_event_is_adopted_and_undone(scene: Scene) -> None:
    scene.set("adopt: [mechanic]\nuncordon: {settle: 0s}")
    node = mechanic(scene, 0)

    scene.run()
    scene.run()

    assert scene.is_untouched(node)


def test_mechanics_cordon_is_a_foreign_one_where_it_is_not_adopted(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = mechanic(scene, 0)
    scene.condition_tells(node)
    scene.finish()

    scene.condition_silent(node)
    scene.run()

    assert scene.cordoned(node)
    assert scene.api.get("nodes", node)["metadata"]["labels"]["mechanic.cordoned"] == "true"


def test_with_aks_remediator_a_node_is_drained_too_and_uncordoned_after_it_has_let_go(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node(0)
    scene.workload("web", node)
    taint(scene, node, REMEDIATOR)
    scene.condition_tells(node, "Redeploy")
    report = scene.finish()
    assert scene.pods_on(node) == []
    assert any("AKS's remediator is active" in note for note in report.document["notes"])

    scene.condition_silent(node)
    report = scene.run()

    assert scene.cordoned(node)
    assert "remediator is working on the node" in report.holds(node)["leftByRemediator"]
    taints = scene.api.get("nodes", node)["spec"]["taints"]
    assert REMEDIATOR["key"] in [one["key"] for one in taints]

    taint(scene, node)
    scene.run()
    assert scene.is_untouched(node)


def test_nodes_that_the_remediator_has_tainted_are_left_to_it_where_the_settings_say_so(scene: Scene) -> None:
    scene.set("coexist: {aksRemediator: Leave}")
    node = scene.node(0, taints=[REMEDIATOR])
    scene.condition_tells(node, "Redeploy")

    report = scene.run()

    assert not scene.cordoned(node)
    assert "aksRemediator is Leave" in report.holds(node)["leftToUs"]


def test_the_remediators_preview_keeps_freezes_to_itself(scene: Scene) -> None:
    scene.set("events: {Freeze: {drain: true}, LiveMigration: {drain: true}}\nbudget: {maxUnavailable: 3}")
    config = json.dumps({"Cluster": {"OnFreeze": {"Enabled": True}}})
    name = {"name": "remediator-config", "namespace": "kube-system"}
    scene.api.create("configmaps", {"metadata": name, "data": {"appConfig": config}})
    frozen, migrated, rebooted = scene.node(0), scene.node(1), scene.node(2)
    scene.condition_tells(frozen, "Freeze")
    scene.condition_tells(migrated, "Freeze", description=LIVE_MIGRATION)
    scene.condition_tells(rebooted, "Reboot")

    report = scene.run()

    for node in (frozen, migrated):
        assert scene.is_untouched(node)
        assert "left to AKS's remediator" in report.node(node)["events"][0]["because"]
    assert scene.cordoned(rebooted)
    assert any("drains for Freeze too" in note for note in report.document["notes"])


def test_a_remediator_config_that_cannot_be_read_is_reported_and_stops_nothing(scene: Scene) -> None:
    name = {"name": "remediator-config", "namespace": "kube-system"}
    scene.api.create("configmaps", {"metadata": name, "data": {"appConfig": "{not json"}})
    node = scene.node(0)
    scene.condition_tells(node)

    report = scene.run()

    assert scene.cordoned(node)
    assert any("appConfig can't be read" in note for note in report.document["notes"])


def test_karpenter_keeps_the_kinds_that_the_settings_leave_to_it_and_no_others(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 2}\ncoexist: {karpenter: {leave: [Preempt]}}")
    preempted, rebooted = (
        scene.node(instance, labels={"karpenter.sh/nodepool": "general"}) for instance in (0, 1)
    )
    scene.condition_tells(preempted, "Preempt", minutes=0.5)
    scene.condition_tells(rebooted, "Reboot")

    report = scene.run()

    assert scene.is_untouched(preempted)
    assert "left to Karpenter" in report.node(preempted)["events"][0]["because"]
    assert scene.cordoned(rebooted)
    assert any("Karpenter manages 2 nodes; left to it: Preempt" in one for one in report.document["notes"])


def test_a_karpenter_that_may_not_act_is_left_nothing(scene: Scene) -> None:
    name = scene.node(labels={"karpenter.sh/nodepool": "general"})
    scene.condition_tells(name, "Preempt", minutes=0.5)
    scene.run()

    assert scene.cordoned(name)


def test_a_node_that_the_autoscaler_deletes_is_held_before_and_during_a_drain(scene: Scene) -> None:
    node, draining = scene.node(0, taints=[AUTOSCALER]), scene.node(1)
    scene.set("budget: {maxUnavailable: 2}")
    scene.workload("web", draining)
    scene.api.create(
        "poddisruptionbudgets",
        {
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        },
    )
    for one in (node, draining):
        scene.condition_tells(one)
    report = scene.run()
    assert not scene.cordoned(node)
    assert "autoscaler is deleting the node" in report.holds(node)["leftToUs"]

    taint(scene, draining, AUTOSCALER)
    report = scene.run()

    assert report.actions(draining) == ["stop drain"]
    assert "autoscaler is deleting the node" in report.holds(draining)["leftToUs"]


def test_an_agent_that_is_not_ready_makes_imds_unknown_and_holds_the_uncordon(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    scene.api.create_namespace("agents")
    agent = daemon_set("agent", namespace="agents")
    labels = {"app.kubernetes.io/name": "agent"}
    agent["spec"]["template"]["metadata"]["labels"].update(labels)
    scene.api.create("daemonsets", agent)
    node, other = scene.node(0), scene.node(1)
    wait_for("two agents", lambda: scene.ready("agent", 2))
    scene.imds_tells(0, scene.event(0))
    scene.finish()
    assert scene.cordoned(node)

    (mine,) = (
        each["metadata"]["name"]
        for each in scene.api.list("pods", "agents")
        if each["spec"]["nodeName"] == node
    )
    ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    scene.api.patch("pods", mine, ready, "agents", kind="strategic", subresource="status")
    wait_for(
        "a status that counts it",
        lambda: scene.api.get("daemonsets", "agent", "agents")["status"].get("numberReady") == 1,
    )
    # It last reported that the event is gone, and the age of that report is unknown.
    scene.imds_tells(0)
    report = scene.run()

    assert scene.cordoned(node)
    assert "imds reported Reboot and can't be read now" in report.holds(node)["eventsGone"]
    assert any("its agent is not ready" in text for text in report.node(node)["unknown"])
    assert report.node(other) == {}

    ready["status"]["conditions"][0]["status"] = "True"
    scene.api.patch("pods", mine, ready, "agents", kind="strategic", subresource="status")
    wait_for(
        "a status that counts it",
        lambda: scene.api.get("daemonsets", "agent", "agents")["status"].get("numberReady") == 2,
    )
    scene.run()
    assert scene.is_untouched(node)


def test_no_agent_is_one_line_and_windows_nodes_are_reported_as_not_covered(scene: Scene) -> None:
    for instance in range(3):
        scene.node(instance)
    windows = scene.node(0, Pool("win", windows=True))
    report = scene.run()
    notes = report.document["notes"]
    assert report.document["nodes"] == []
    assert [note for note in notes if note.startswith("imds:")] == [
        "imds: Windows nodes are not covered by the agent (1 of 4 nodes)",
        "imds: no node agent is installed (3 of 4 nodes)",
    ]
    assert "Windows nodes have no node-problem-detector (1 of 4 nodes)" in " ".join(notes)

    # A request is what is left for them.
    scene.annotate(windows, "request", '{"kind": "Reboot"}')
    scene.run()

    assert scene.cordoned(windows)
