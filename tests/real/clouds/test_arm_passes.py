"""Whole passes on the real API server, a fake ARM beside it: planned reboots, and doing them ourselves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from reconciler.kubernetes.cluster import LEDGER
from reconciler.run import rehearse
from reconciler.sources.arm.client import Arm
from tests.real.passes.scene import MONDAY_NOON, POOL, Scene
from tests.support.controlplane.api import Api
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.fill import Pool
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


def writes(scene: Scene) -> list[AuditEntry]:
    """Every request of ours that changes something."""
    return scene.asked("create", "update", "patch", "delete")


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


def test_a_reboot_weeks_ahead_is_reported_with_both_windows_and_no_node_is_drained(
    scene: Scene, azure: FakeArm
) -> None:
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, offer(scene))

    report = scene.run()

    (event,) = report.node(node)["events"]
    assert (event["kind"], event["sources"], event["asksForDrain"]) == ("Redeploy", ["arm"], False)
    assert event["plan"]["offered"]
    assert event["plan"]["offerEnd"] == event["notBefore"]
    assert "events.Redeploy.ahead" in event["because"]
    assert scene.is_untouched(node)


def test_a_plan_of_days_waits_for_its_notice_only_where_a_condition_brings_one(
    scene: Scene, azure: FakeArm
) -> None:
    scene.set("sources: {arm: {enabled: true}}\nbudget: {maxUnavailable: 3}")
    azure.uniform(0, 1, 2)
    live, blind = scene.node(0), scene.node(2)
    # The condition about spot VMs is no source of this notice.
    scene.condition(blind, "VMEventScheduled", "Unknown", "IMDS query failed")
    scene.condition(blind, "PreemptionScheduled", "False", "no preemption is scheduled")
    deaf = POOL.node(1, now=scene.now, images=1)
    conditions = deaf["status"]["conditions"]
    deaf["status"]["conditions"] = [one for one in conditions if one["type"] != "VMEventScheduled"]
    dated = str(scene.api.create("nodes", deaf)["metadata"]["name"])
    for instance in range(3):
        azure.plan(instance, soon(scene))

    report = scene.run()

    assert scene.cordoned(blind)
    (event,) = report.node(live)["events"]
    assert not event["asksForDrain"]
    assert "its notice comes minutes before" in event["because"]
    assert scene.is_untouched(live)
    schedule = report.node(dated)["schedule"]
    (event,) = report.node(dated)["events"]
    assert schedule["latestStart"] == event["deadline"]
    assert scene.cordoned(dated)

    scene.condition_tells(live, "Redeploy")
    scene.run()

    assert scene.cordoned(live)


def test_five_lists_an_interval_for_a_thousand_nodes_also_when_each_pass_is_a_process(
    scene: Scene, azure: FakeArm
) -> None:
    pools = [Pool(f"np{number}") for number in range(5)]
    for pool in pools:
        azure.uniform(*range(200), scale_set=pool.scale_set)
        for instance in range(3):
            scene.node(instance, pool)

    first = list(lists_of(scene, azure, 15))
    assert sorted(first) == sorted(pool.scale_set.casefold() for pool in pools)
    assert azure.pages == 10
    again = lists_of(scene, azure, 1)

    assert sorted(again) == sorted(first)


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


def test_a_dry_run_writes_no_answer_down(scene: Scene, azure: FakeArm) -> None:
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, soon(scene))

    before = len(writes(scene))
    plan = rehearse(scene.outside, scene.settings, scene.now)

    assert [one.node for one in plan.nodes] == [node]
    assert scene.api.find("configmaps", LEDGER, "node-maintenance") is None
    assert len(writes(scene)) == before


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


@pytest.mark.parametrize(
    "refusal", [arm.THROTTLED, arm.FORBIDDEN, arm.NO_TOKEN, arm.BROKEN], ids=lambda one: str(one.status)
)
def test_if_azure_refuses_the_events_are_unknown_and_other_nodes_continue(
    scene: Scene, azure: FakeArm, refusal: arm.Refusal
) -> None:
    azure.uniform(0, 1)
    node, other = scene.node(0), scene.node(1)
    azure.plan(0, soon(scene))
    azure.refuse(refusal, times=9)
    scene.condition_tells(other)

    report = scene.run()

    assert scene.is_untouched(node)
    assert any(
        text.startswith("arm: ") and str(refusal.status) in text for text in report.node(node)["unknown"]
    )
    assert scene.cordoned(other)


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


def test_a_scale_set_deleted_in_between_and_its_nodes_after_it(scene: Scene, azure: FakeArm) -> None:
    batch = Pool("batch")
    azure.uniform(0)
    azure.uniform(0, scale_set=batch.scale_set)
    node, gone = scene.node(0), scene.node(0, batch)
    azure.plan(0, soon(scene), batch.scale_set)
    scene.finish()

    azure.delete(batch.scale_set)
    next_answer(scene)
    report = scene.run()
    assert any("404" in text for text in report.node(gone)["unknown"])
    assert not any(text.startswith("arm") for text in report.node(node)["unknown"])

    scene.api.delete("nodes", gone)
    assert scene.run().node(gone) == {}


def test_nodes_of_every_kind_are_distinguished_and_other_clouds_are_ignored(
    scene: Scene, azure: FakeArm
) -> None:
    azure.uniform(0)
    scene.node(0)
    names = ("flexprofile-mp-0_df53ee36", "aks-default-pb9ls")
    for number, name in enumerate(names, 1):
        azure.single(name)
        made = Pool("np").node(number, now=scene.now, images=1)
        made["metadata"]["name"] = name.replace("_", "-")
        made["spec"]["providerID"] = arm.provider_id(name).upper().replace("AZURE:", "azure:")
        scene.api.create("nodes", made)
    foreign = Pool("np").node(5, now=scene.now, images=1)
    foreign["spec"]["providerID"] = "kind://docker/kind/node"
    scene.api.create("nodes", foreign)
    azure.plan(names[1], soon(scene))

    report = scene.run()

    assert sorted(azure.lists) == [SCALE_SET, "single VMs"]
    assert [one["name"] for one in report.document["nodes"]] == [names[1]]
    assert report.actions(names[1]) == ["cordon", "drain"]


def test_without_our_config_map_azure_is_only_asked_more_often(scene: Scene, azure: FakeArm) -> None:
    scene.api.delete("namespaces", "node-maintenance")
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, soon(scene))

    report = scene.run()
    scene.run()

    assert "write ledger" in [one["action"] for one in report.document["outcomes"]]
    assert scene.cordoned(node)
    assert len(azure.lists) == 2


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


def test_without_windows_an_offer_is_taken_at_once_and_by_default_never(scene: Scene, azure: FakeArm) -> None:
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, offer(scene))
    scene.finish()
    assert scene.is_untouched(node)

    scene.set(OURSELVES)
    scene.finish()
    scene.run()

    assert azure.performed == [f"{SCALE_SET}_0"]


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


def test_if_azure_never_does_it_the_node_is_uncordoned_and_the_event_ignored(
    scene: Scene, azure: FakeArm
) -> None:
    scene.set(OURSELVES)
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, offer(scene, result="RetryLater"))
    scene.finish()

    for _ in range(40):
        scene.run()
        scene.clock.advance(minutes=3)

    assert azure.performed == [f"{SCALE_SET}_0"] * 3
    assert not scene.cordoned(node)
    reasons = {event["reason"] for event in scene.api.list("events", "default")}
    assert "MaintenanceGivenUp" in reasons
    assert "dismissed" in scene.run().holds(node)


def test_a_refused_start_is_a_failure_of_that_node_alone(scene: Scene, azure: FakeArm) -> None:
    scene.set(OURSELVES + "budget: {maxUnavailable: 2}\n")
    azure.uniform(0, 1)
    node, other = scene.node(0), scene.node(1)
    azure.plan(0, offer(scene))
    scene.finish()
    azure.refuse(arm.FORBIDDEN, "performMaintenance")
    scene.condition_tells(other)

    report = scene.run()

    failed = [one for one in report.document["outcomes"] if one["result"] == "failed"]
    assert [(one["node"], one["action"]) for one in failed] == [(node, "perform maintenance")]
    assert "403 AuthorizationFailed" in failed[0]["detail"]
    assert scene.cordoned(other)


def test_an_offer_that_ends_before_it_was_taken_gives_the_node_back(scene: Scene, azure: FakeArm) -> None:
    scene.set(OURSELVES)
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, offer(scene))
    scene.run()
    assert scene.cordoned(node)

    azure.plan(0, offer(scene, allowed=False))
    next_answer(scene)
    scene.finish()
    scene.finish()

    assert scene.is_untouched(node)
    assert azure.performed == []


def test_only_so_many_nodes_are_taken_at_once_as_the_budget_has_places(scene: Scene, azure: FakeArm) -> None:
    scene.set(OURSELVES + "budget: {maxUnavailable: 1}\n")
    azure.uniform(0, 1, 2)
    nodes = [scene.node(number) for number in range(3)]
    for number in range(3):
        azure.plan(number, offer(scene))

    scene.finish()
    scene.run()

    assert len(azure.performed) == 1
    assert sum(scene.cordoned(node) for node in nodes) == 1


def test_a_person_who_uncordons_stops_it(scene: Scene, azure: FakeArm) -> None:
    scene.set(OURSELVES)
    azure.uniform(0)
    node = scene.node(0)
    azure.plan(0, offer(scene))
    scene.finish()

    scene.uncordon(node)
    scene.finish()
    scene.clock.advance(minutes=30)
    scene.finish()

    assert azure.performed == []
    assert not scene.cordoned(node)
