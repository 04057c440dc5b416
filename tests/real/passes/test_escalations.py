"""When a drain does not finish: each stage that the settings allow, done and reported; none by default."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.real.passes.processes import ENFORCE, Done, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_drains import cover
from tests.support.controlplane.workloads import deployment, pod

pytestmark = pytest.mark.slow

Object = dict[str, Any]


def asked(scene: Scene, verb: str, resource: str, since: datetime) -> list[str]:
    """The names of what we asked one verb for."""
    entries = scene.asked(verb, since=since)
    return [one.name for one in entries if one.resource == resource and one.code < 300]


def escalated(scene: Scene, node: str) -> list[str]:
    """What the node's Events say of stages."""
    return [
        event["message"]
        for event in scene.api.list("events", "default")
        if event["reason"] == "MaintenanceEscalated" and event["involvedObject"]["name"] == node
    ]


def report(done: Done, node: str) -> list[str]:
    """What the pass's own report says of stages."""
    assert done.code == 0, done.err
    return list(done.node(node)["drain"]["escalations"])


@pytest.fixture
def blocked(scene: Scene) -> str:
    """A node with one pod that its budget holds, before an event of its own."""
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    return node


def test_by_default_a_budget_outlasts_the_deadline(scene: Scene, programs: Programs, blocked: str) -> None:
    scene.condition_tells(blocked, minutes=0.05)
    since = datetime.now(UTC)

    done = programs.sweep("--for", "4s")

    assert report(done, blocked) == []
    assert scene.pods_on(blocked) == ["web"]
    assert asked(scene, "delete", "pods", since) == []
    assert escalated(scene, blocked) == []


def test_what_blocks_is_named_loudly_once(scene: Scene, programs: Programs, blocked: str) -> None:
    programs.configure(f"{ENFORCE}drain: {{escalation: {{warnAfter: 1s}}}}\n")
    scene.condition_tells(blocked)

    done = programs.sweep("--for", "4s")

    (text,) = report(done, blocked)
    assert text.startswith("not drained after 0:00:01: default/web-")
    assert text.endswith("waits for PDB default/web: needs 1 healthy, has 1")
    assert escalated(scene, blocked) == [text]
    assert scene.pods_on(blocked) == ["web"]


def test_before_the_deadline_it_is_deleted_where_that_is_allowed(
    scene: Scene, programs: Programs, blocked: str
) -> None:
    programs.configure(f"{ENFORCE}drain: {{escalation: {{deleteBeforeDeadline: true}}}}\n")
    scene.condition_tells(blocked, minutes=0.2)
    since = datetime.now(UTC)

    done = programs.sweep("--for", "60s")

    (text,) = report(done, blocked)
    assert text.endswith("is deleted instead of evicted, to be gone by the deadline")
    assert escalated(scene, blocked) == [text]
    assert scene.pods_on(blocked) == []
    assert len(asked(scene, "delete", "pods", since)) == 1


def test_a_pod_stuck_on_a_dead_node_goes_without_grace_where_that_is_allowed(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(f"{ENFORCE}drain: {{escalation: {{forceDeleteStuckAfter: 1s}}}}\n")
    node = scene.node()
    scene.workload("web", node, labels={"test/stuck-terminating": "true"})
    scene.condition(node, "Ready", "Unknown")
    scene.condition_tells(node)
    since = datetime.now(UTC)

    done = programs.sweep("--for", "60s")

    (text,) = report(done, node)
    assert "is deleted with grace period 0, because it is stuck on a node that is not Ready" in text
    assert escalated(scene, node) == [text]
    assert scene.pods_on(node) == []
    assert len(asked(scene, "delete", "pods", since)) == 1


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        pytest.param("drain: {restartSingletons: true}\n", {}, id="by the settings"),
        pytest.param("", {"node-maintenance.dev/restart": "true"}, id="by the pod's label"),
    ],
)
def test_a_singletons_new_pod_is_up_elsewhere_before_the_old_one_goes(
    scene: Scene, programs: Programs, settings: str, labels: dict[str, str]
) -> None:
    programs.configure(f"{ENFORCE}{settings}")
    node = scene.node(0)
    scene.workload("web", labels=labels)
    cover(scene, "web")
    scene.node(1)
    scene.condition_tells(node)
    since = datetime.now(UTC)

    done = programs.sweep("--for", "60s")

    assert done.code == 0, done.err
    assert scene.pods_on(node) == []
    assert scene.ready("web", 1)
    assert asked(scene, "patch", "deployments", since) == ["web"]
    assert asked(scene, "delete", "pods", since) == []
    assert [name for name in asked(scene, "create", "pods", since) if name.startswith("web")] == []


def test_a_singleton_that_can_not_be_restarted_is_reported_with_the_reason(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(f"{ENFORCE}drain: {{restartSingletons: true}}\n")
    node = scene.node(0)
    made = deployment("web", 1)
    made["spec"]["strategy"] = {"type": "Recreate"}
    scene.deploy(made)
    cover(scene, "web")
    scene.node(1)
    scene.condition_tells(node)

    done = programs.sweep("--for", "4s")

    (blocker,) = done.node(node)["drain"]["blockers"]
    assert "waits for PDB default/web" in blocker["because"]
    assert "Recreate" in blocker["because"]
    assert scene.pods_on(node) == ["web"]


def test_a_pod_may_opt_out_for_itself(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.workload("rare", node, labels={"node-maintenance.dev/drain": "skip"})
    scene.api.create("pods", pod("legacy", node_name=node, labels={"cluster.x-k8s.io/drain": "skip"}))
    scene.condition_tells(node)

    done = programs.sweep("--for", "30s")

    assert done.code == 0, done.err
    assert scene.pods_on(node) == ["legacy", "rare"]
    assert scene.cordoned(node)
