"""What a drain takes, what it leaves, and whose cordon stays."""

from __future__ import annotations

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import budget

EMPTY_DIR = [{"name": "scratch", "emptyDir": {}}]


def cover(scene: Scene, app: str) -> None:
    """Let a PodDisruptionBudget hold the app's only pod."""
    scene.api.create("poddisruptionbudgets", budget(app, min_available=1))
    wait_for(
        "a budget that was counted",
        lambda: scene.api.get("poddisruptionbudgets", app).get("status", {}).get("currentHealthy") == 1,
    )


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
