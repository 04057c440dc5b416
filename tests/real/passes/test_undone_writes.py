"""Webhooks and policies that undo or deny what a pass writes on a node: it is said, and becomes rare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.snapshot import NOT_WRITTEN
from tests.real.passes.scene import PREFIX, Object, Scene
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.webhooks import changed_nodes, for_nodes, in_force

PASSES = 60


def without_cordon(node: Object) -> list[Object]:
    return [{"op": "remove", "path": "/spec/unschedulable"}] if node["spec"].get("unschedulable") else []


def without_our_labels(node: Object) -> list[Object]:
    found = node["metadata"].get("labels") or {}
    return [
        {"op": "remove", "path": f"/metadata/labels/{key.replace('/', '~1')}"}
        for key in found
        if key.startswith(PREFIX)
    ]


def warnings(scene: Scene, node: str) -> list[str]:
    """The messages of the Warning Events about writes that did not stay."""
    found = scene.api.list("events", namespace="default")
    return [
        one["message"]
        for one in found
        if (one["reason"], one["type"], one["involvedObject"]["name"]) == (NOT_WRITTEN, "Warning", node)
    ]


def patches(scene: Scene, node: str) -> int:
    """How often the program has patched the node."""
    return sum(one.resource == "nodes" and one.name == node for one in scene.asked("patch"))


def test_a_cordon_that_a_webhook_removes_leaves_no_record_and_is_said(scene: Scene, tmp_path: Path) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node)
    words = "spec.unschedulable did not stay"
    with changed_nodes(scene.api, tmp_path, without_cordon):
        assert words in scene.run().text
        assert scene.is_untouched(node)

        tries = []
        for _ in range(PASSES):
            tries.append(patches(scene, node))
            scene.clock.advance(seconds=10)
            scene.run()
        held = scene.run()
        # One try and one write that takes it back, each time after a pause that is twice as long.
        assert patches(scene, node) <= 2 * 10
        assert tries[-1] > tries[0]
        assert words in held.holds(node)["nodeWritable"]
        assert any(words in one for one in warnings(scene, node))
        assert scene.is_untouched(node)
        assert scene.pods_on(node) == ["web"]

    scene.clock.advance(minutes=15)
    scene.condition_tells(node)
    scene.run()
    scene.finish()
    # It was nobody's wish: the same event is served once the webhook is gone.
    assert scene.cordoned(node)
    assert scene.pods_on(node) == []


def test_a_label_that_a_webhook_removes_stops_no_drain_and_is_not_written_for_ever(
    scene: Scene, tmp_path: Path
) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node)
    with changed_nodes(scene.api, tmp_path, without_our_labels):
        scene.run()
        scene.finish()
        assert scene.pods_on(node) == []
        before = patches(scene, node)
        for _ in range(PASSES):
            scene.clock.advance(seconds=10)
            scene.run()
        assert patches(scene, node) - before <= 10
        assert scene.cordoned(node)
        assert scene.record(node) is not None


POLICY, BINDING = for_nodes(
    "no-reconciler", "!object.spec.?unschedulable.orValue(false)", "nodes stay schedulable"
)


@pytest.fixture(autouse=True)
def ledger(scene: Scene) -> None:
    """The place of the ledger, which the lock creates."""
    scene.api.create_namespace("node-maintenance")


@pytest.fixture
def denied(scene: Scene) -> Iterator[str]:
    """A node in a cluster with a policy that denies cordons."""
    node = scene.node()

    def denies() -> bool:
        try:
            scene.api.patch("nodes", node, {"spec": {"unschedulable": True}})
            scene.uncordon(node)
        except ApiError:
            return True
        return False

    with in_force(scene.api, POLICY, BINDING, denies):
        yield node


def test_a_policy_that_denies_cordons_is_said_and_not_asked_for_ever(scene: Scene, denied: str) -> None:
    scene.condition_tells(denied)
    for _ in range(PASSES):
        scene.clock.advance(seconds=10)
        scene.run()
    held = scene.run()
    words = "nodes stay schedulable"
    assert patches(scene, denied) <= 2 * 10
    assert words in held.holds(denied)["nodeWritable"]
    assert any(words in one for one in warnings(scene, denied))
    assert scene.is_untouched(denied)
