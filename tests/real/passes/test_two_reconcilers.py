"""Two reconcilers with locks in two namespaces see each other, and the younger one starts no drain."""

from __future__ import annotations

import json

from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for

RECORD = "node-maintenance.dev/record"
SECOND = ("--reconciler-namespace", "second")


def lock_of(scene: Scene, node: str) -> str:
    """The lock that the record of a node names, empty without a record."""
    text = scene.api.get("nodes", node)["metadata"].get("annotations", {}).get(RECORD)
    return str(json.loads(text).get("lock", "")) if text else ""


def report_of_second(programs: Programs) -> Done:
    """The report about the reconciler with its lock in the second namespace."""
    return programs.run("report", *SECOND, "--output", "json")


def test_of_two_whose_first_starts_fall_into_the_same_pass_the_younger_starts_none(
    scene: Scene, programs: Programs
) -> None:
    programs.configure("mode: Enforce\nbudget: {maxUnavailable: 1, spacing: 0s}\n")
    nodes = [scene.node(0), scene.node(1)]
    older = programs.start("serve", "--every", "1s")
    older.wait_for("leading")
    wait_for("a pass", lambda: "runs" in programs.run("plan").out.splitlines()[0], seconds=30)
    younger = programs.start("serve", "--every", "1s", *SECOND)
    younger.wait_for("leading", seconds=60)
    # No node has a record: nothing but the locks says that there are two.
    (line,) = younger.wait_for("another reconciler acts on the same nodes", seconds=60)
    assert line["because"] == "its lock is in namespace node-maintenance"

    for node in nodes:
        scene.condition_tells(node)
    wait_for("records", lambda: all(lock_of(scene, node) for node in nodes), seconds=60)
    wait_for("a start", lambda: any(scene.cordoned(node) for node in nodes), seconds=60)
    # The younger one may begin a record, and the older one goes on with it.
    assert len([node for node in nodes if scene.cordoned(node)]) == 1
    assert all("cordon" not in line["actions"] for line in younger.said("node"))


def test_two_that_begin_together_with_different_prefixes_see_each_other(
    scene: Scene, programs: Programs
) -> None:
    text = "mode: Enforce\nbudget: {maxUnavailable: 100%}\n"
    programs.configure(text)
    config = programs.folder / "other.yaml"
    config.write_text(f"{text}keys: {{prefix: other.example}}\n", encoding="utf-8")
    node = scene.node(0)
    both = [
        programs.start("serve", "--every", "1s"),
        programs.start("serve", "--every", "1s", *SECOND, config=config),
    ]
    said = [each.wait_for("another reconciler acts on the same nodes", seconds=90)[0] for each in both]
    assert [line["because"] for line in said] == [
        "its lock is in namespace second",
        "its lock is in namespace node-maintenance",
    ]
    where = [[], [*SECOND, "--config", str(config)]]
    shown = [programs.run("report", "--output", "json", *each).document["reconciler"] for each in where]
    assert [each["yieldsTo"] for each in shown].count(None) == 1

    scene.condition_tells(node)
    younger, older = both if shown[0]["yieldsTo"] else both[::-1]
    older.wait_for("node", seconds=60)
    wait_for("a start", lambda: any("cordon" in line["actions"] for line in older.said("node")), seconds=60)
    wait_for("a hold", lambda: younger.said("node"), seconds=60)
    assert all("cordon" not in line["actions"] for line in younger.said("node"))


def test_of_two_reconcilers_the_younger_starts_no_drain_until_the_older_one_is_gone(
    scene: Scene, programs: Programs
) -> None:
    programs.configure("mode: Enforce\nbudget: {maxUnavailable: 100%}\n")
    first, second = scene.node(0), scene.node(1)
    older = programs.start("serve", "--every", "1s")
    older.wait_for("leading")
    scene.condition_tells(first)
    wait_for("a record", lambda: lock_of(scene, first) == "node-maintenance", seconds=30)

    younger = programs.start("serve", "--every", "1s", *SECOND)
    younger.wait_for("leading", seconds=60)
    (line,) = younger.wait_for("another reconciler acts on the same nodes", seconds=60)
    assert line["because"] == "its lock is in namespace node-maintenance"

    shown = report_of_second(programs).document["reconciler"]
    assert (shown["others"], shown["yieldsTo"]) == (["node-maintenance"], "node-maintenance")
    assert "TWO RECONCILERS ACT ON THESE NODES" in programs.run("plan", *SECOND).out

    assert programs.run("request", second, "--kind", "Reboot", "--not-before", "+3h").code == 0

    def held() -> bool:
        seen = report_of_second(programs).node(second)
        held = "onlyReconciler" in {hold["check"] for hold in seen["holds"]}
        return held and seen["schedule"]["plannedStart"] is None

    # Of passes a second apart, the lock says so up to two seconds later, so the older one may look overdue.
    wait_for("the hold", held, seconds=30)

    # Nobody continues what waits for the older one, until it is known to be gone.
    older.kill()
    scene.condition_tells(second)
    younger.does("drain", lambda: scene.cordoned(second), seconds=60)

    def alone() -> bool:
        shown = report_of_second(programs).document["reconciler"]
        return (shown["others"], shown["yieldsTo"]) == ([], None)

    # The younger may have started while the older one only looked overdue.
    wait_for("the end of the older one", alone, seconds=60)
