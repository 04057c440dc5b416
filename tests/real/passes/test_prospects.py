"""A pod whose PodDisruptionBudget never allows its eviction: everything says so at the announcement."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_metrics import Series, read, scraped
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import budget

pytestmark = pytest.mark.slow


def events(scene: Scene, node: str, reason: str = "MaintenanceWillBeMissed") -> list[str]:
    """The messages of the Events about the node with this reason."""
    return [
        event["message"]
        for event in scene.api.list("events", "default")
        if event["reason"] == reason and event["involvedObject"]["name"] == node
    ]


@pytest.mark.parametrize("minutes", [40, 300], ids=["while it is drained", "before its drain"])
def test_one_replica_behind_min_available_1_will_be_missed_until_the_budget_changes(
    scene: Scene, programs: Programs, tmp_path: Path, minutes: int
) -> None:
    file = tmp_path / "node_maintenance.prom"
    programs.configure(ENFORCE)
    node = scene.node()
    (pod,) = scene.workload("web", node)
    scene.api.create("poddisruptionbudgets", budget("web", min_available=1))
    wait_for("its status", lambda: scene.api.get("poddisruptionbudgets", "web", "default").get("status"))
    scene.condition_tells(node, "Redeploy", minutes=minutes)

    def swept() -> Series:
        assert programs.sweep("--for", "1s", "--metrics-file", str(file)).code == 0
        return read(file.read_text(encoding="utf-8"))

    def schedule(command: str, *arguments: str) -> dict[str, object]:
        done = programs.run(command, *arguments, "--output", "json").document
        nodes = done.get("cases") or done.get("nodes") or [done["node"]]
        return next(one["schedule"] for one in nodes if one["name"] == node)

    def everything() -> set[object]:
        told = [schedule("plan"), schedule("report"), schedule("explain", node)]
        return {(one["forecast"], one["missed"]) for one in told}

    series = swept()
    assert series["case_will_be_missed", "Redeploy", node] == 1
    (message,) = events(scene, node)
    why = f"default/{pod} (Deployment default/web) can't be evicted: PodDisruptionBudget default/web requires"
    assert why in message
    assert everything() == {("will be missed", True)}
    shown = " ".join(programs.run("plan").out.split())
    assert "1 case: 1 will be missed" in shown
    assert why in shown

    scene.api.patch("poddisruptionbudgets", "web", {"spec": {"minAvailable": 0}}, "default")

    def back() -> bool:
        return swept().get(("case_will_be_missed", "Redeploy", node)) == 0

    wait_for("the forecast to go back", back, seconds=60)
    assert len(events(scene, node)) == 1
    assert everything() == {("on track", False)}


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


def test_a_pod_that_no_other_node_takes_is_a_risk_until_a_node_of_its_pool_joins(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    file = tmp_path / "node_maintenance.prom"
    programs.configure(ENFORCE)
    special = Pool("gpu")
    node = scene.node(0, special)
    scene.node(0)
    (pod,) = scene.workload("web", node_selector={"agentpool": "gpu"})
    scene.condition_tells(node, "Reboot", minutes=300)

    def at_risk() -> float | None:
        assert programs.sweep("--for", "1s", "--metrics-file", str(file)).code == 0
        return read(file.read_text(encoding="utf-8")).get(("case_at_risk", "Reboot", node))

    assert at_risk() == 1
    why = (
        f"default/{pod} (Deployment default/web) can't run elsewhere: no other node takes it: "
        "1 not matching its node selector or affinity. Add or uncordon a node"
    )
    (case,) = programs.run("plan", "--output", "json").document["cases"]
    assert case["schedule"]["forecastBecause"].startswith(why)
    assert why in " ".join(programs.run("explain", node).out.split())
    assert events(scene, node) == []

    spare = scene.node(1, special)
    assert at_risk() == 0
    scene.api.patch("nodes", spare, {"spec": {"unschedulable": True}})
    assert at_risk() == 1
