"""What a person says with `approve`, `hold` and `resume`, and what passes and a drain that runs do then."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.model.drains import Phase
from tests.real.passes.processes import Programs
from tests.real.passes.scene import PREFIX, Scene
from tests.real.passes.test_drains import cover
from tests.support.controlplane.waiting import wait_for

pytestmark = pytest.mark.slow

POLICY = """
mode: Enforce
uncordon: {settle: 0s}
events: {Reboot: {approval: true}}
drain: {rules: [{name: last, pods: {app: database}, order: 10}]}
"""


def _annotations(scene: Scene, node: str) -> dict[str, Any]:
    return dict(scene.api.get("nodes", node)["metadata"].get("annotations", {}))


def _evicted(scene: Scene, since: datetime) -> list[str]:
    entries = scene.asked("create", since=since)
    return [one.name.split("-")[0] for one in entries if one.subresource == "eviction" and one.code < 300]


def test_a_person_approves_a_drain_stops_it_between_two_evictions_and_lets_it_go_on(
    scene: Scene, programs: Programs
) -> None:
    scene.set(POLICY)
    programs.configure(POLICY)
    node = scene.node()
    scene.workload("web", node)
    scene.workload("database", node)
    cover(scene, "database")
    scene.condition_tells(node)

    assert "approved" in scene.run().holds(node)
    assert not scene.cordoned(node)
    done = programs.run("approve", node, "--reason", "CHG-42")
    assert done.code == 0, done.err

    scene.run()
    wait_for("the eviction of the first pod", lambda: scene.pods_on(node) == ["database"])

    done = programs.run("hold", node, "--now", "--reason", "look \x1b[31mfirst")
    assert done.code == 0, done.err
    assert "look \\x1b[31mfirst" in done.out
    report = scene.run()
    assert "notStopped" in report.holds(node)
    wait_for("the end of the drain", lambda: scene.drainer.progress()[node].phase is Phase.STOPPED)
    since = datetime.now(UTC)
    scene.api.delete("poddisruptionbudgets", "database")
    scene.run()
    assert (_evicted(scene, since), scene.pods_on(node), scene.cordoned(node)) == ([], ["database"], True)

    done = programs.run("resume", node)
    assert done.code == 0, done.err
    scene.finish()
    assert scene.pods_on(node) == []

    scene.condition_silent(node)
    scene.clock.advance(seconds=1)
    scene.run()
    assert not scene.cordoned(node)
    assert {f"{PREFIX}/{key}" for key in ("hold", "approved", "said-before", "record")}.isdisjoint(
        _annotations(scene, node)
    )
    said = [one["reason"] for one in scene.api.list("events") if one["involvedObject"]["name"] == node]
    assert {"MaintenanceApproved", "MaintenanceHeld", "MaintenanceResumed"} <= set(said)


def test_a_hold_of_all_nodes_is_about_a_node_that_joins_later_and_outlives_what_passes_write(
    scene: Scene, programs: Programs
) -> None:
    scene.set("budget: {spacing: 1m}")
    first = scene.node(0)
    refused = programs.run("hold", "--all")
    assert (refused.code, "there is no namespace node-maintenance" in refused.err) == (1, True)
    scene.api.create_namespace("node-maintenance")
    done = programs.run("hold", "--pool", "np", "--reason", "incident 311")
    assert done.code == 0, done.err
    assert done.out.splitlines()[1].startswith("pool np is held by ")
    done = programs.run("hold", "--all")
    assert done.code == 0, done.err
    later = scene.node(1)
    scene.condition_tells(later)

    assert "notHeld" in scene.run().holds(later)
    assert programs.run("resume", "--all").code == 0
    assert "pool np is held by" in scene.run().holds(later)["notHeld"]
    assert programs.run("resume", "--pool", "np").code == 0
    scene.run()
    assert scene.cordoned(later)

    # The pass has written the last start into the same ConfigMap.
    assert programs.run("hold", "--all").code == 0
    scene.condition_tells(first)
    assert {"notHeld", "spacingKept"} <= set(scene.run().holds(first))
