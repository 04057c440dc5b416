"""Two reconcilers with locks in two namespaces see each other, and the younger one starts no drain."""

from __future__ import annotations

import json

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for

RECORD = "node-maintenance.dev/record"


def lock_of(scene: Scene, node: str) -> str:
    """The lock that the record of a node names, empty without a record."""
    text = scene.api.get("nodes", node)["metadata"].get("annotations", {}).get(RECORD)
    return str(json.loads(text).get("lock", "")) if text else ""


def test_of_two_reconcilers_the_younger_starts_no_drain_until_the_older_one_is_gone(
    scene: Scene, programs: Programs
) -> None:
    programs.configure("mode: Enforce\nbudget: {maxUnavailable: 100%}\n")
    first, second = scene.node(0), scene.node(1)
    older = programs.start("serve", "--every", "1s")
    older.wait_for("leading")
    scene.condition_tells(first)
    wait_for("a record", lambda: lock_of(scene, first) == "node-maintenance", seconds=30)

    younger = programs.start("serve", "--every", "1s", "--namespace", "second")
    younger.wait_for("leading", seconds=60)
    (line,) = younger.wait_for("another reconciler acts on the same nodes", seconds=60)
    assert line["because"] == "its lock is in namespace node-maintenance"

    shown = programs.run("report", "--namespace", "second", "--output", "json").document["reconciler"]
    assert (shown["others"], shown["yieldsTo"]) == (["node-maintenance"], "node-maintenance")
    assert "TWO RECONCILERS ACT ON THESE NODES" in programs.run("plan", "--namespace", "second").out

    assert programs.run("request", second, "--kind", "Reboot", "--not-before", "+3h").code == 0
    held = programs.run("report", "--namespace", "second", "--output", "json").node(second)
    assert "onlyReconciler" in {hold["check"] for hold in held["holds"]}
    assert held["schedule"]["plannedStart"] is None

    # Nobody continues what waits for the older one, until it is known to be gone.
    older.kill()
    scene.condition_tells(second)
    younger.does("drain", lambda: scene.cordoned(second), seconds=60)
    shown = programs.run("report", "--namespace", "second", "--output", "json").document["reconciler"]
    assert (shown["others"], shown["yieldsTo"]) == ([], None)
