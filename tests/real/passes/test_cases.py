"""The life of a case: events that change, are cancelled, or go; nodes that vanish; people who step in."""

from __future__ import annotations

import json

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import POOL, PREFIX, Scene
from tests.support.controlplane.fill import vm_event
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import budget

ID = "11111111-AAAA-4000-8000-000000000001"
OTHER_ID = "22222222-BBBB-4000-8000-000000000002"


def evictions(scene: Scene) -> int:
    """How many the API server was asked for by us."""
    entries = scene.asked("create")
    return sum(entry.subresource == "eviction" for entry in entries)


def blocked(scene: Scene, node: str) -> None:
    """Two pods on the node; a budget never allows the eviction of one of them."""
    scene.workload("web", node)
    scene.workload("shop", node)
    scene.api.create("poddisruptionbudgets", budget("web", min_available=1))


def test_a_whole_case_from_its_first_event_to_the_uncordon(scene: Scene) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node, event_id=ID)
    scene.finish()
    assert scene.pods_on(node) == []

    # Started is not gone: with the node still out, nothing is undone.
    scene.condition_tells(node, status="Started", event_id=ID)
    assert "Reboot (Started)" in scene.run().holds(node)["eventsGone"]
    scene.condition(node, "Ready", "False")
    scene.condition_silent(node)
    assert "NotReady" in scene.run().holds(node)["nodeReady"]
    scene.condition(node, "Ready", "True")
    report = scene.run()
    assert set(report.holds(node)) == {"eventsGone", "nodeReady"}
    assert "settles until" in report.holds(node)["eventsGone"]
    assert scene.cordoned(node)

    scene.clock.advance(minutes=2, seconds=1)
    scene.condition_silent(node)
    report = scene.run()

    assert report.actions(node) == ["uncordon"]
    assert scene.is_untouched(node)
    reasons = [event["reason"] for event in scene.api.list("events", "default")]
    assert sorted(one for one in reasons if one.startswith("Maintenance")) == [
        "MaintenanceCordon",
        "MaintenanceDone",
        "MaintenanceDrained",
    ]


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_source_that_reported_the_event_and_is_unknown_now_holds_the_uncordon(
    scene: Scene, status: str
) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node()
    scene.condition_tells(node, event_id=ID)
    scene.finish()

    scene.condition(node, "VMEventScheduled", status, "IMDS query failed, exit code: 28")
    report = scene.run()

    assert scene.cordoned(node) == (status == "Unknown")
    if status == "Unknown":
        assert "can't be read now" in report.holds(node)["eventsGone"]


def test_a_source_whose_heartbeat_is_old_holds_the_uncordon(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node()
    scene.condition_tells(node)
    scene.finish()
    scene.condition_silent(node)

    scene.clock.advance(minutes=16)
    report = scene.run()

    assert scene.cordoned(node)
    assert "can't be read now" in report.holds(node)["eventsGone"]
    assert any("16 minutes old" in text for text in report.node(node)["unknown"])


def test_an_event_that_no_source_can_report_leads_to_no_drain(scene: Scene) -> None:
    node = scene.node()
    scene.condition(node, "VMEventScheduled", "Unknown", "Timeout when running plugin")

    report = scene.run()

    assert scene.is_untouched(node)
    assert "unknown: condition:VMEventScheduled" in report.text


def test_the_uncordon_waits_for_every_source_that_reported_the_event(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node()
    scene.condition_tells(node)
    scene.imds_tells(0, scene.event(0))
    scene.finish()

    scene.condition_silent(node)
    report = scene.run()
    assert scene.cordoned(node)
    assert "waits for the end of Reboot (Scheduled)" in report.holds(node)["eventsGone"]

    scene.imds_tells(0)
    scene.run()
    assert scene.is_untouched(node)


def test_an_event_that_changes_its_id_and_its_time_is_the_case_going_on(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node()
    scene.workload("web", node)
    scene.imds_tells(0, scene.event(0, minutes=10, event_id=ID))
    scene.finish()

    later = scene.event(0, minutes=60, event_id=OTHER_ID)
    scene.imds_tells(0, later)
    scene.finish()

    record = scene.record(node)
    assert record is not None
    (known,) = record["profiles"]["default"]["events"]
    assert known["ids"] == [OTHER_ID]
    assert scene.cordoned(node)

    scene.imds_tells(0)
    scene.run()

    assert scene.is_untouched(node)


def test_an_event_under_a_new_id_is_a_new_event_of_the_same_case(scene: Scene) -> None:
    node = scene.node()
    scene.imds_tells(0, scene.event(0, event_id=ID))
    scene.finish()
    before = scene.record(node)

    scene.imds_tells(0, {**scene.event(0, event_id=OTHER_ID), "EventStatus": "Started", "NotBefore": ""})
    scene.run()

    after = scene.record(node)
    assert before is not None
    assert after is not None
    assert after["cordon"] == before["cordon"]
    assert [known["ids"] for known in after["profiles"]["default"]["events"]] == [[OTHER_ID]]


def test_an_event_cancelled_in_mid_drain_stops_the_evictions_settles_and_uncordons(scene: Scene) -> None:
    node = scene.node()
    blocked(scene, node)
    scene.condition_tells(node)
    scene.run()
    wait_for("the end of the other pod", lambda: scene.pods_on(node) == ["web"])

    scene.condition_silent(node)
    report = scene.run()

    assert "stop drain" in report.actions(node)
    assert "settles until" in report.holds(node)["eventsGone"]
    wait_for("the end of the drain", lambda: scene.drainer.wait(0))
    asked = evictions(scene)
    scene.api.delete("poddisruptionbudgets", "web", "default")
    # A second look, in which an eviction would have been allowed.
    scene.run()
    assert evictions(scene) == asked
    assert scene.cordoned(node)

    scene.clock.advance(minutes=2, seconds=1)
    scene.condition_silent(node)
    scene.run()

    assert scene.is_untouched(node)
    assert evictions(scene) == asked
    assert scene.ready("web", 1)


def test_an_event_cancelled_before_its_drain_leaves_nothing_behind(scene: Scene) -> None:
    scene.set('windows: [{name: never, start: "00:00", end: "00:01"}]')
    scene.clock.set(scene.now.replace(hour=12))
    node = scene.node()
    scene.condition_tells(node, minutes=60)
    scene.run()
    assert scene.state(node) == "maintenance-required"

    scene.condition_silent(node)
    scene.run()

    assert scene.is_untouched(node)


def test_a_persons_uncordon_is_respected_until_a_new_event(scene: Scene) -> None:
    node = scene.node()
    blocked(scene, node)
    scene.condition_tells(node, event_id=ID)
    scene.run()
    wait_for("the end of the other pod", lambda: scene.pods_on(node) == ["web"])

    scene.uncordon(node)
    report = scene.run()

    assert "stop drain" in report.actions(node)
    scene.api.delete("poddisruptionbudgets", "web", "default")
    for _ in range(2):
        report = scene.run()
        assert report.actions(node) == []
    assert "ignored until a new event" in report.holds(node)["dismissed"]
    assert not scene.cordoned(node)
    assert "web" in scene.pods_on(node)

    scene.condition_tells(node, "Redeploy", minutes=30, event_id=OTHER_ID)
    scene.finish()

    assert scene.cordoned(node)
    assert scene.pods_on(node) == []


def test_a_drainer_stops_by_itself_when_a_person_uncordons_the_node(scene: Scene) -> None:
    node = scene.node()
    blocked(scene, node)
    scene.condition_tells(node)
    scene.run()
    wait_for("the end of the other pod", lambda: scene.pods_on(node) == ["web"])

    scene.uncordon(node)
    scene.api.delete("poddisruptionbudgets", "web", "default")

    wait_for("the end of the drain", lambda: scene.drainer.progress()[node].phase.value == "stopped")
    assert scene.pods_on(node)[-1] == "web"


@pytest.mark.parametrize("same_process", [True, False], ids=["under a drain", "between two sweeps"])
def test_a_node_created_again_under_its_name_in_mid_case_is_another_node(
    scene: Scene, same_process: bool
) -> None:
    node = scene.node()
    blocked(scene, node)
    scene.condition_tells(node)
    scene.run()
    wait_for("the end of the other pod", lambda: scene.pods_on(node) == ["web"])
    record = json.dumps(scene.record(node))
    if not same_process:
        scene.new_process()

    scene.api.delete("nodes", node)
    # A node that is created again from a copy has the label and the record of the old one.
    scene.node(0, labels={f"{PREFIX}/state": "in-maintenance"}, annotations={f"{PREFIX}/record": record})
    scene.api.delete("poddisruptionbudgets", "web", "default")
    scene.run()
    scene.run()

    assert scene.is_untouched(node)
    assert not any(plan.todo.drain for plan in scene.plans.values())


def test_a_node_that_vanishes_is_a_case_well_ended(scene: Scene) -> None:
    node = scene.node()
    blocked(scene, node)
    scene.condition_tells(node)
    scene.run()

    scene.api.delete("nodes", node)
    report = scene.run()

    assert all(one["result"] in ("done", "running") for one in report.document["outcomes"])
    assert report.document["budget"]["taken"] == 0
    wait_for("the end of the drain", lambda: scene.drainer.wait(0))


@pytest.mark.slow
def test_a_broken_record_holds_its_node_and_others_are_served_until_it_is_reset(
    scene: Scene, programs: Programs
) -> None:
    broken, newer, served = scene.node(0), scene.node(1), scene.node(2)
    programs.configure("mode: Enforce\nbudget: {maxUnavailable: 3}\n")
    scene.annotate(broken, "record", "{not json")
    scene.annotate(newer, "record", '{"version": 3, "uid": "x", "profiles": {}}')
    for node in (broken, newer, served):
        scene.condition_tells(node)

    done = programs.sweep()

    assert done.code == 0, done.err
    assert scene.cordoned(served)
    for node in (broken, newer):
        assert not scene.cordoned(node)
        (hold,) = done.node(node)["holds"]
        assert hold["check"] == "recordReadable"
        assert f"reconciler release {node} --reset" in hold["reason"]
    assert scene.api.get("nodes", broken)["metadata"]["annotations"][f"{PREFIX}/record"] == "{not json"

    refused = programs.run("release", broken)
    healed = programs.run("release", broken, "--reset")
    after = programs.sweep()

    assert refused.code == 1
    assert "--reset" in refused.err
    assert healed.code == 0, healed.err
    assert after.code == 0, after.err
    assert scene.cordoned(broken)


@pytest.mark.slow
def test_release_undoes_what_is_ours_and_only_that(scene: Scene, programs: Programs) -> None:
    programs.configure("mode: Enforce\nbudget: {maxUnavailable: 4}\n")
    ours, foreign, other = scene.node(0), scene.node(1, unschedulable=True), scene.node(2, unschedulable=True)
    for node in (ours, foreign):
        scene.condition_tells(node)
    assert programs.sweep().code == 0
    assert scene.state(foreign) == "in-maintenance"

    done = programs.run("release", "--all")

    assert done.code == 0, done.err
    assert scene.is_untouched(ours)
    assert scene.record(foreign) is None
    assert scene.state(foreign) is None
    assert scene.cordoned(foreign)
    assert scene.cordoned(other)
    assert f"{ours}: released and uncordoned" in done.out
    assert f"{foreign}: released; still cordoned, not by us" in done.out
    assert other not in done.out
    assert "no node has labels or annotations of the reconciler" in programs.run("release", "--all").out
    assert programs.run("release", POOL.node_name(77)).code == 1


def test_the_state_of_a_case_survives_the_process_that_wrote_it(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node)
    scene.run()
    scene.new_process()
    scene.finish()
    scene.new_process()
    assert scene.pods_on(node) == []

    scene.condition_silent(node)
    scene.run()

    assert scene.is_untouched(node)


def test_a_message_that_cannot_be_read_any_more_is_not_the_end_of_the_event(scene: Scene) -> None:
    scene.set("uncordon: {settle: 0s}")
    node = scene.node()
    scene.condition_tells(node)
    scene.finish()

    garbled = {**vm_event("Reboot", now=scene.now), "message": "Something is up with this VM"}
    scene.api.patch(
        "nodes", node, {"status": {"conditions": [garbled]}}, kind="strategic", subresource="status"
    )
    scene.run()

    assert scene.cordoned(node)
