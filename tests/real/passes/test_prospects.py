"""A pod whose PodDisruptionBudget never allows its eviction: everything says so at the announcement."""

from __future__ import annotations

import pytest

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_metrics import scraped
from tests.support.controlplane.workloads import budget

pytestmark = pytest.mark.slow


def events(scene: Scene, node: str, reason: str = "MaintenanceWillBeMissed") -> list[str]:
    """The messages of the Events about the node with this reason."""
    return [
        event["message"]
        for event in scene.api.list("events", "default")
        if event["reason"] == reason and event["involvedObject"]["name"] == node
    ]


def test_serve_takes_a_forecast_back_and_a_miss_names_pod_workload_and_budget(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(ENFORCE)
    calm, struck = scene.node(0), scene.node(1)
    pods = {}
    for node, name in ((calm, "web"), (struck, "db")):
        (pods[node],) = scene.workload(name, node)
        scene.api.create("poddisruptionbudgets", budget(name, min_available=1))
    process = programs.start("serve", "--every", "2s", "--listen", "127.0.0.1:0")
    (line,) = process.wait_for("listening")
    for node in (calm, struck):
        scene.condition_tells(node, "Redeploy", minutes=300)

    def forecast(node: str) -> float | None:
        return scraped(line["address"]).get(("case_will_be_missed", "Redeploy", node))

    process.does("say both", lambda: [forecast(calm), forecast(struck)] == [1, 1])
    scene.api.delete("poddisruptionbudgets", "web", "default")
    scene.condition_tells(struck, "Redeploy", status="Started")

    process.does("take one back", lambda: forecast(calm) == 0, seconds=90)

    def missed() -> list[str]:
        return events(scene, struck, "MaintenanceMissed")

    process.does("say that the other is missed", missed, seconds=90)
    assert f"default/{pods[struck]} (Deployment default/db, PodDisruptionBudget default/db)" in missed()[0]
    process.does("say that it was taken back", lambda: events(scene, calm, "MaintenanceNoLongerMissed"))
