"""Whole passes on the real API server, a fake ARM beside it: planned reboots, and doing them ourselves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from reconciler.sources.arm.client import Arm
from tests.real.passes.scene import MONDAY_NOON, Scene
from tests.support.fakes import arm
from tests.support.fakes.arm import SCALE_SET, FakeArm

Object = dict[str, Any]

# The nodes have the condition that brings notices. Here a plan is dated at its first day all the same.
ARM = "sources: {arm: {enabled: true, waitForNotice: Never}}"
OURSELVES = "sources: {arm: {enabled: true, selfService: true}}\nuncordon: {settle: 0s}\n"
NIGHTS = OURSELVES + 'windows: [{name: nights, start: "22:00", end: "02:00"}]\n'


@pytest.fixture
def azure(scene: Scene) -> Iterator[FakeArm]:
    scene.api.create_namespace("node-maintenance")
    with FakeArm() as fake:
        scene.clients["arm"] = Arm(arm.compute(fake), guard=lambda: None)
        scene.set(ARM)
        yield fake
        assert fake.violations == []


def offer(scene: Scene, *, allowed: bool = True, result: str = "None") -> Object:
    """Self-service from yesterday on for two weeks, Azure's own window after it."""
    start, middle, end = (scene.now + timedelta(days=days) for days in (-1, 14, 28))
    return arm.status(offered=allowed, offer=(start, middle), window=(middle, end), result=result)


def boots(scene: Scene, node: str, boot: str) -> None:
    """Let the node have booted."""
    info = {**scene.api.get("nodes", node)["status"]["nodeInfo"], "bootID": boot}
    scene.api.patch("nodes", node, {"status": {"nodeInfo": info}}, subresource="status")


# As a source.


# Self-service.


def test_an_offer_is_taken_in_a_window_of_ours_from_cordon_to_uncordon(scene: Scene, azure: FakeArm) -> None:
    scene.set(NIGHTS)
    scene.clock.set(MONDAY_NOON)
    azure.uniform(0)
    node = scene.node(0)
    scene.workload("web", node)
    azure.plan(0, offer(scene))

    assert "the offer of Azure waits for a window" in scene.run().holds(node)["windowOpen"]
    assert not scene.cordoned(node)
    scene.clock.set(MONDAY_NOON.replace(hour=22, minute=1))
    scene.finish()
    assert scene.pods_on(node) == []
    assert azure.performed == []

    report = scene.run()
    assert report.actions(node) == ["record", "perform maintenance"]
    assert azure.performed == [f"{SCALE_SET}_0"]
    record = scene.record(node)
    assert record is not None
    assert record["profiles"]["default"]["asked"][0]["attempts"] == 1

    # It runs for some minutes; Azure has said yes and is asked for its word more often.
    azure.plan(0, offer(scene, allowed=False))
    azure.forget()
    scene.clock.advance(minutes=3)
    report = scene.run()
    assert len(azure.lists) == 1
    assert report.actions(node) in ([], ["record"])
    assert "has not booted since" in report.holds(node)["offerAnswered"]

    scene.condition(node, "Ready", "False")
    boots(scene, node, "another-boot")
    azure.plan(0, arm.status(result="MaintenanceCompleted"))
    scene.clock.advance(minutes=3)
    assert set(scene.run().holds(node)) == {"nodeReady"}
    scene.condition(node, "Ready", "True")
    report = scene.run()

    assert report.actions(node) == ["uncordon"]
    assert scene.is_untouched(node)
    assert azure.performed == []
