"""Pods that tolerate the cordon: the scheduler puts their replacements back on the node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.drain.filters import RETURNS_TOLERATING
from tests.real.passes.scene import Scene
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import deployment


def _agent(scene: Scene, node: str, replicas: int = 1) -> None:
    made = deployment("agent", replicas, node_selector={"kubernetes.io/hostname": node})
    made["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    scene.deploy(made)
    # Objects have whole seconds: the pods are older than the drain, and what replaces them is not.
    created = datetime.now(UTC).replace(microsecond=0)
    wait_for("a later time", lambda: datetime.now(UTC) > created + timedelta(seconds=2))
    scene.clock.set(created + timedelta(seconds=1))


def _evictions(scene: Scene, since: datetime) -> int:
    return sum(entry.subresource == "eviction" for entry in scene.asked("create", since=since))


def test_a_pass_evicts_each_pod_once_and_ends_the_drain(scene: Scene) -> None:
    since, node = datetime.now(UTC), scene.node()
    _agent(scene, node, 2)
    scene.workload("web", node)
    scene.condition_tells(node)

    report = scene.finish()

    assert _evictions(scene, since) == 3
    assert {one["because"] for one in report.node(node)["kept"]} == {RETURNS_TOLERATING}
    record = scene.record(node)
    assert record is not None
    assert record["drain"]["kept"]["count"] == 2
