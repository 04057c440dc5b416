"""Whole passes on the real API server, a fake ARM beside it: planned reboots, and doing them ourselves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from reconciler.kubernetes.paths import LEDGER
from reconciler.sources.arm.client import Arm
from tests.real.passes.scene import MONDAY_NOON, Scene
from tests.support.controlplane.api import Api
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


def soon(scene: Scene, hours: float = 1) -> Object:
    """Azure's own window in so many hours, self-service over."""
    start = scene.now + timedelta(hours=hours)
    return arm.status(window=(start, start + timedelta(days=7)))


def ledger(api: Api) -> Object:
    found = api.get("configmaps", LEDGER, "node-maintenance")
    return dict(found["data"])


def boots(scene: Scene, node: str, boot: str) -> None:
    """Let the node have booted."""
    info = {**scene.api.get("nodes", node)["status"]["nodeInfo"], "bootID": boot}
    scene.api.patch("nodes", node, {"status": {"nodeInfo": info}}, subresource="status")


def next_answer(scene: Scene) -> None:
    """Let the interval go by."""
    scene.clock.advance(minutes=16)


def lists_of(scene: Scene, azure: FakeArm, passes: int) -> list[str]:
    """What is listed in so many passes a minute apart, each a process of its own."""
    azure.forget()
    for _ in range(passes):
        scene.new_process()
        scene.clients["arm"] = Arm(arm.compute(azure), guard=lambda: None)
        scene.run()
        scene.clock.advance(minutes=1)
    return azure.lists


# As a source.


def test_a_reboot_planned_for_soon_is_drained_for_and_ends_when_azure_has_done_it(
    scene: Scene, azure: FakeArm
) -> None:
    scene.set(f"{ARM}\nuncordon: {{settle: 0s}}")
    azure.uniform(0, 1)
    node, other = scene.node(0), scene.node(1)
    scene.workload("web", node)
    azure.plan(0, soon(scene))

    scene.finish()
    assert scene.cordoned(node)
    assert scene.pods_on(node) == []
    assert scene.is_untouched(other)

    azure.plan(0, arm.status(result="MaintenanceCompleted"))
    assert "waits for the end of" in scene.run().holds(node)["eventsGone"]
    next_answer(scene)
    scene.run()
    assert scene.is_untouched(node)
    assert azure.performed == []


def test_what_azure_said_is_remembered_and_acted_on_by_the_next_process(scene: Scene, azure: FakeArm) -> None:
    scene.set(f'{ARM}\nwindows: [{{start: "22:00", end: "02:00"}}]')
    scene.clock.set(MONDAY_NOON.replace(hour=21, minute=55))
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, soon(scene))
    scene.run()
    assert "windowOpen" in scene.run().holds(node)
    scene.clock.advance(minutes=6)

    assert lists_of(scene, azure, 1) == []
    assert scene.cordoned(node)


def test_a_converged_pass_writes_nothing_until_azure_is_asked_again(scene: Scene, azure: FakeArm) -> None:
    azure.uniform(0)
    scene.node(0)
    azure.plan(0, offer(scene))
    scene.run()
    before = ledger(scene.api)

    for _ in range(3):
        scene.clock.advance(minutes=4)
        report = scene.run()
        assert report.document["outcomes"] == []
    assert ledger(scene.api) == before
    assert report.document["nextChange"] is not None

    next_answer(scene)
    scene.run()
    assert ledger(scene.api) != before


def test_an_azure_that_refuses_holds_the_uncordon_and_is_asked_again_later(
    scene: Scene, azure: FakeArm
) -> None:
    scene.set(f"{ARM}\nuncordon: {{settle: 0s}}")
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, soon(scene))
    scene.finish()

    azure.plan(0, None)
    azure.refuse(arm.Refusal(429, headers={"Retry-After": "1200"}))
    next_answer(scene)
    report = scene.run()
    assert "arm reported Redeploy and can't be read now" in report.holds(node)["eventsGone"]
    scene.clock.advance(minutes=19)
    assert lists_of(scene, azure, 1) == []
    assert scene.cordoned(node)

    scene.clock.advance(minutes=1)
    scene.run()
    assert scene.is_untouched(node)


# Self-service.


def test_an_offer_is_taken_in_a_window_of_ours_from_cordon_to_uncordon(scene: Scene, azure: FakeArm) -> None:
    scene.set(NIGHTS)
    scene.clock.set(MONDAY_NOON)
    azure.uniform(0)
    node = scene.node(0)
    scene.workload("web", node)
    azure.plan(0, offer(scene))

    assert "self-service waits for a window" in scene.run().holds(node)["windowOpen"]
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
    assert record["profiles"]["default"]["selfService"]["attempt"] == 1

    # It runs for some minutes; Azure has said yes and is asked for its word more often.
    azure.plan(0, offer(scene, allowed=False))
    azure.forget()
    scene.clock.advance(minutes=3)
    report = scene.run()
    assert len(azure.lists) == 1
    assert report.actions(node) in ([], ["record"])
    assert "has not booted since" in report.holds(node)["selfServiceDone"]

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


def test_a_process_killed_between_record_and_request_asks_once_more_but_not_at_once(
    scene: Scene, azure: FakeArm
) -> None:
    scene.set(OURSELVES)
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, offer(scene))
    scene.finish()
    asking = scene.clients.pop("arm")  # it dies before it has spoken
    report = scene.run()
    assert report.actions(node) == ["record", "perform maintenance"]
    assert azure.performed == []

    scene.new_process()
    scene.clients["arm"] = asking
    for _ in range(3):
        scene.run()
        scene.clock.advance(minutes=3)
    assert azure.performed == []
    scene.clock.advance(minutes=2)
    scene.run()

    assert azure.performed == [f"{SCALE_SET}_0"]
    record = scene.record(node)
    assert record is not None
    assert record["profiles"]["default"]["selfService"]["attempt"] == 2
