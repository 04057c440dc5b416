"""Files in the form of maintenance-controller, as `serve --config` runs them on the real API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.passes.processes import Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.workloads import budget

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
        "state of each node", lambda: {shown(scene, each) for each in (node, other)} == {"operational"}
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

    def told() -> set[tuple[str, str]]:
        events = [event for event in scene.api.list("events") if event["reason"] == "ChangedMaintenanceState"]
        return {(event["involvedObject"]["uid"], event["type"]) for event in events}

    # They are sent behind the passes.
    process.does("the Events", lambda: told() == {(node, "Normal")})
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
    scene.free_lock()
    scene.api.delete("poddisruptionbudgets", "web")

    process = programs.start("serve", "--every", "1h")

    process.does("drained node", lambda: not scene.pods_on(node))
    label(scene, node, OUTDATED, "false")
    process.does("node in service", lambda: not scene.cordoned(node))
    assert states(scene, node) == {"kubelet": "operational"}
    assert process.terminate().code == 0
