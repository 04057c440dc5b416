"""How many requests a drain by hand makes, with everything that the command sends."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.drain.drainer import Limits
from tests.real.passes.processes import Programs
from tests.real.passes.scene import POOL, Scene
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import budget, deployment

PODS, BUDGETS = 100, 20
CALM = timedelta(seconds=8)
APPS = [f"app-{number}" for number in range(BUDGETS)]


def _settled(scene: Scene) -> bool:
    """Whether all pods are ready, and each budget has counted its own."""
    found = {one["metadata"]["name"]: one.get("status", {}) for one in scene.api.list("poddisruptionbudgets")}
    return all(found.get(app, {}).get("currentHealthy") == PODS // BUDGETS for app in APPS)


@pytest.mark.slow
def test_a_drain_makes_hardly_more_requests_than_it_has_pods(scene: Scene, programs: Programs) -> None:
    node = scene.node(0)
    for app in APPS:
        made = deployment(app, PODS // BUDGETS)
        made["spec"]["template"]["spec"].pop("topologySpreadConstraints")
        scene.api.create("deployments", made)
        scene.api.create("poddisruptionbudgets", budget(app, max_unavailable=2))
    wait_for("100 pods that are counted", lambda: _settled(scene), seconds=120)
    for number in range(1, 4):
        scene.api.create("nodes", POOL.node(number))
    since = datetime.now(UTC)

    done = programs.run("drain", node)

    assert done.code == 0, done.err
    entries = scene.asked(since=since)
    kinds = Counter((entry.verb, entry.resource, entry.subresource) for entry in entries)
    # The server may refuse one while it counts a budget again. All requests together have a limit below.
    assert kinds["create", "pods", "eviction"] >= PODS
    # While it evicts, it looks at the node every two seconds. On a calm machine it takes five.
    times = [entry.timestamp for entry in entries]
    slower = max(max(times) - min(times) - CALM, timedelta())
    assert len(entries) <= 1.15 * PODS + 10 + slower / Limits().check_ahead, kinds
    # The others in the namespace find the reason on the workloads beside theirs.
    assert {
        one["involvedObject"]["kind"]
        for one in scene.api.list("events")
        if one["reason"] == "MaintenanceMovesPods"
    } == {"Deployment"}
