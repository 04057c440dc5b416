"""`plan` as a newcomer uses it: rights on nodes and pods, five nodes due together, a budget of two."""

from __future__ import annotations

import pytest

from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_report_rights import NODES_AND_PODS, RBAC, reader, removed
from tests.support.controlplane.waiting import wait_for

ROLE = "nodes-and-pods-of-a-plan"


@pytest.mark.slow
def test_the_misses_of_five_nodes_under_a_budget_of_two_are_shown_hours_before(
    scene: Scene, programs: Programs
) -> None:
    nodes = [scene.node(instance) for instance in range(5)]
    for node in nodes:
        scene.condition_tells(node, "Redeploy", minutes=300)
    programs.configure("mode: Enforce\nbudget: {maxUnavailable: 2}\n")
    scene.api.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": ROLE}, "rules": NODES_AND_PODS})
    kubeconfig = reader(scene, ROLE, ROLE)

    def planned(*arguments: str) -> Done | None:
        # The server needs a moment to know the rights.
        done = programs.run("plan", *arguments, kubeconfig=kubeconfig)
        return None if done.code == 3 else done

    try:
        text = wait_for("the rights", planned)
        document = wait_for("the rights", lambda: planned("--output", "json", "--until", "1d")).document
    finally:
        removed(scene, ROLE)
        scene.api.request("DELETE", f"{RBAC}/clusterroles/{ROLE}")

    assert (text.code, text.err) == (0, "")
    assert "5 cases: 3 will be missed, 2 planned" in text.out
    assert "could not see: the ledger (needs get configmaps in node-maintenance)" in " ".join(
        text.out.split()
    )
    assert max(map(len, text.out.splitlines())) <= 80
    rows = [line.split() for line in text.out.splitlines() if line.startswith(("MISSED", "planned"))]
    assert [row[0] for row in rows] == ["MISSED"] * 3 + ["planned"] * 2
    assert sum(line.startswith("! ") for line in text.out.splitlines()) == 3

    schedules = {one["name"]: one["schedule"] for one in document["cases"]}
    missed = [one for one in schedules.values() if one["missed"]]
    assert set(schedules) == set(nodes)
    assert len(missed) == 3
    assert all("maxUnavailable" in one["because"] for one in missed)
    assert all(scene.is_untouched(node) for node in nodes)
