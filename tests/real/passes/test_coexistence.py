"""Beside other tools that cordon, drain and delete nodes, and beside the node agent's own troubles."""

from __future__ import annotations

import json

from tests.real.passes.scene import LIVE_MIGRATION, Scene
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import daemon_set


def test_mechanics_cordon_is_adopted_drained_and_undone(scene: Scene) -> None:
    scene.set("adopt: [mechanic]\nuncordon: {settle: 0s}")
    node = scene.node(0, unschedulable=True, labels={"mechanic.cordoned": "true"})
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
