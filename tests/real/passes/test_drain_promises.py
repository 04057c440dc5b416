"""What a drain promises beyond kubectl's: order, one wave of cordons, volumes, and a preview beforehand."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_drains import cover
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import pod


def _writes(scene: Scene, since: datetime) -> list[AuditEntry]:
    return [one for one in scene.asked("create", "patch", since=since) if one.code < 300]


def test_all_nodes_that_are_due_are_cordoned_before_the_first_pod_is_evicted(
    scene: Scene, programs: Programs
) -> None:
    nodes = [scene.node(0), scene.node(1), scene.node(2)]
    for number, node in enumerate(nodes[:2]):
        scene.workload(f"web{number}", node)
        scene.condition_tells(node)
    programs.configure(f"{ENFORCE}budget: {{maxUnavailable: 2}}\n")
    since = datetime.now(UTC)

    done = programs.sweep("--for", "30s")

    assert done.code == 0, done.err
    order = [
        "cordon" if one.resource == "nodes" else "evict"
        for one in _writes(scene, since)
        if one.resource == "nodes" or one.subresource == "eviction"
    ]
    assert order[:4] == ["cordon", "cordon", "evict", "evict"]


def test_the_next_order_of_a_rule_goes_when_the_former_has_gone(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    scene.workload("frontend", node)
    scene.workload("database", node)
    scene.condition_tells(node)
    programs.configure(f"{ENFORCE}drain: {{rules: [{{name: last, pods: {{app: database}}, order: 10}}]}}\n")
    since = datetime.now(UTC)

    done = programs.sweep("--for", "30s")

    assert done.code == 0, done.err
    evicted = [one.name.split("-")[0] for one in _writes(scene, since) if one.subresource == "eviction"]
    assert evicted == ["frontend", "database"]


def test_a_pod_that_is_to_complete_is_waited_for_and_never_evicted(scene: Scene) -> None:
    scene.set("drain: {rules: [{name: jobs, pods: {app: batch}, behavior: WaitCompleted}]}")
    node = scene.node()
    scene.workload("web", node)
    scene.workload("batch", node)
    scene.condition_tells(node)
    since = datetime.now(UTC)

    scene.run()
    wait_for("the other pod's end", lambda: scene.pods_on(node) == ["batch"])
    report = scene.run()

    assert any("wait until it has completed" in reason for reason in report.holds(node).values())
    evicted = {one.name.split("-")[0] for one in _writes(scene, since) if one.subresource == "eviction"}
    assert evicted == {"web"}


def test_a_node_is_not_drained_while_a_volume_is_attached_to_it(scene: Scene) -> None:
    node = scene.node()
    scene.workload("web", node)
    source = {"persistentVolumeName": "data"}
    spec = {"attacher": "disk.csi.azure.com", "nodeName": node, "source": source}
    scene.api.create("volumeattachments", {"metadata": {"name": "csi-1"}, "spec": spec})
    scene.condition_tells(node)
    scene.run()
    wait_for("an empty node", lambda: scene.pods_on(node) == [])
    scene.run()
    record = scene.record(node)
    assert record is not None
    assert "done" not in record["drain"]
    scene.api.delete("volumeattachments", "csi-1")
    scene.clock.advance(seconds=5)
    scene.finish()

    record = scene.record(node)
    assert record is not None
    assert "done" in record["drain"]


def test_the_report_names_what_goes_what_stays_and_what_blocks_before_anything_moves(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node(0)
    scene.workload("web", node)
    cover(scene, "web")
    scene.api.create("pods", pod("naked", node_name=node, labels={"app": "naked"}))
    scene.condition_tells(node)

    done = programs.run("report", "--format", "json")

    assert done.code == 0, done.err
    preview = done.node(node)["preview"]
    assert {one["pod"].split("/")[1].split("-")[0]: one["action"] for one in preview["pods"]} == {
        "web": "evict",
        "naked": "keep",
    }
    blocked = {one["pod"].split("/")[1].split("-")[0]: one["because"] for one in preview["blockers"]}
    assert "default/web requires 1 healthy pod, and there is only 1 in all" in blocked["web"]
    assert "no controller" in blocked["naked"]
    # Its node is the only one that its selector admits.
    assert any("web" in line for line in preview["room"])
    assert not scene.cordoned(node)
