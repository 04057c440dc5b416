"""Files in the form of maintenance-controller, as `serve --config` runs them on the real API server."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.real.passes.processes import Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.workloads import budget, pod

pytestmark = pytest.mark.slow

EXAMPLE = (Path(__file__).parents[3] / "examples" / "maintenance-controller.yaml").read_text("utf-8")
PROFILE, STATE, DATA = (f"cloud.sap/maintenance-{word}" for word in ("profile", "state", "data"))
FLATCAR = "flatcar-linux-update.v1.flatcar-linux.net"
NEEDED, ALLOWED, APPROVED = (
    f"{FLATCAR}/reboot-needed",
    f"{FLATCAR}/reboot-ok",
    "cloud.sap/maintenance-approved",
)
OUTDATED = "cloud.sap/kubelet-needs-update"


def serve(programs: Programs, text: str = EXAMPLE) -> Running:
    """Serve the file as it is; the schedule is hourly."""
    programs.configure(text)
    process = programs.start("serve", "--every", "1h", "--listen", "127.0.0.1:0")
    process.wait_for("leading")
    return process


def known(process: Running, node: str) -> dict[str, str]:
    """The state of each profile of the node, as `/api/v1/info` of maintenance-controller has it."""
    (line,) = process.wait_for("listening")
    with urllib.request.urlopen(f"http://{line['address']}/api/v1/info", timeout=60) as answer:
        found = json.load(answer)
    (profiles,) = (one["profiles"] for one in found if one["node"] == node)
    return {each["name"]: each["applied"]["next"] for each in profiles}


def metadata(scene: Scene, node: str) -> dict[str, Any]:
    found: dict[str, Any] = scene.api.get("nodes", node)["metadata"]
    return found


def shown(scene: Scene, node: str) -> str | None:
    label: str | None = metadata(scene, node)["labels"].get(STATE)
    return label


def states(scene: Scene, node: str) -> dict[str, str]:
    text = metadata(scene, node).get("annotations", {}).get(DATA, "{}")
    return {name: kept["Current"] for name, kept in json.loads(text).get("Profiles", {}).items()}


def annotate(scene: Scene, node: str, key: str, value: str | None) -> None:
    scene.api.patch("nodes", node, {"metadata": {"annotations": {key: value}}})


def label(scene: Scene, node: str, key: str, value: str | None) -> None:
    scene.api.patch("nodes", node, {"metadata": {"labels": {key: value}}})


def test_a_reboot_waits_for_a_person_and_the_node_comes_back(scene: Scene, programs: Programs) -> None:
    node, other = scene.node(0), scene.node(1)
    label(scene, node, PROFILE, "flatcar")
    process = serve(programs)
    process.does(
        "state of each node", lambda: {shown(scene, one) for one in (node, other)} == {"operational"}
    )

    annotate(scene, node, NEEDED, "true")
    process.does("wait for a person", lambda: shown(scene, node) == "maintenance-required")
    assert ALLOWED not in metadata(scene, node)["annotations"]

    annotate(scene, node, APPROVED, "true")
    process.does("permission to reboot", lambda: shown(scene, node) == "in-maintenance")
    annotations = metadata(scene, node)["annotations"]
    assert (annotations[ALLOWED], APPROVED in annotations) == ("true", False)

    annotate(scene, node, NEEDED, None)
    process.does("end of the maintenance", lambda: shown(scene, node) == "operational")
    assert ALLOWED not in metadata(scene, node)["annotations"]
    assert states(scene, other) == {"default": "operational"}
    events = [one for one in scene.api.list("events") if one["reason"] == "ChangedMaintenanceState"]
    assert {(one["involvedObject"]["uid"], one["type"]) for one in events} == {(node, "Normal")}
    assert process.terminate().code == 0


def test_two_profiles_share_nodes_that_go_one_after_another(scene: Scene, programs: Programs) -> None:
    nodes = [scene.node(number) for number in range(2)]
    for node in nodes:
        label(scene, node, PROFILE, "flatcar--kubelet")
        label(scene, node, OUTDATED, "true")
        scene.workload(f"web-{node[-1]}", node)
    process = serve(programs, EXAMPLE.replace("duration: 15m", "duration: 2s"))

    def inside() -> list[str]:
        return [node for node in nodes if states(scene, node).get("kubelet") == "in-maintenance"]

    process.does("first node", lambda: len(inside()) >= 1)
    lease = scene.api.get("leases", "kubelet-updates-0", "default")["spec"]
    assert lease["holderIdentity"] in nodes
    first = lease["holderIdentity"]
    process.does("drained node", lambda: scene.cordoned(first) and not scene.pods_on(first))

    # While it is in maintenance for its kubelet, it is not for its reboot.
    annotate(scene, first, NEEDED, "true")
    annotate(scene, first, APPROVED, "true")
    process.does("second node", lambda: len(inside()) == 2)
    process.does("reboot that waits", lambda: states(scene, first)["flatcar"] == "maintenance-required")

    for node in nodes:
        label(scene, node, OUTDATED, "false")
    process.does("nodes in service", lambda: not any(scene.cordoned(node) for node in nodes))
    process.does(
        "reboot", lambda: states(scene, first) == {"flatcar": "in-maintenance", "kubelet": "operational"}
    )
    assert process.terminate().code == 0


def test_a_drain_of_a_workflow_goes_on_after_the_process_was_killed(scene: Scene, programs: Programs) -> None:
    node = scene.node(0)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=0))
    scene.workload("web", node)
    label(scene, node, PROFILE, "kubelet")
    label(scene, node, OUTDATED, "true")
    killed = serve(programs)
    killed.does("cordon", lambda: scene.cordoned(node))
    killed.kill()
    scene.shorten_lock()
    scene.api.delete("poddisruptionbudgets", "web")

    process = programs.start("serve", "--every", "1h")

    process.does("drained node", lambda: not scene.pods_on(node))
    label(scene, node, OUTDATED, "false")
    process.does("node in service", lambda: not scene.cordoned(node))
    assert states(scene, node) == {"kubelet": "operational"}
    assert process.terminate().code == 0


def test_a_pod_that_outlives_its_grace_period_is_deleted_by_force_where_the_file_says_so(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node(0)
    # Its kubelet never ends it.
    scene.api.create("pods", pod("stuck", node_name=node, labels={"test/stuck-terminating": "true"}))
    label(scene, node, PROFILE, "kubelet")
    label(scene, node, OUTDATED, "true")
    forced = EXAMPLE.replace("action: drain", "action: drain, forceEviction: true")
    assert forced != EXAMPLE

    process = serve(programs, forced)

    process.does("drained node", lambda: not scene.pods_on(node))
    process.does(
        "Event on the pod",
        lambda: any(
            (one["involvedObject"]["name"], one["reason"]) == ("stuck", "MaintenanceEvicted")
            for one in scene.api.list("events")
        ),
    )
    assert process.terminate().code == 0


def test_a_node_that_a_person_uncordons_during_its_drain_shows_its_state_and_can_leave_it(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node(0)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=0))
    scene.workload("web", node)
    label(scene, node, PROFILE, "kubelet")
    label(scene, node, OUTDATED, "true")
    process = serve(programs)
    process.does("cordon", lambda: scene.cordoned(node))

    scene.api.patch("nodes", node, {"spec": {"unschedulable": None}})
    process.does("hold", lambda: "somebody uncordoned the node" in str(process.said("node")))
    assert shown(scene, node) == "in-maintenance"
    assert known(process, node) == {"kubelet": "in-maintenance"}

    label(scene, node, OUTDATED, "false")
    process.does("end of the maintenance", lambda: shown(scene, node) == "operational")
    assert not scene.cordoned(node)
    assert scene.pods_on(node) == ["web"]
    assert process.terminate().code == 0
