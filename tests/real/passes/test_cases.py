"""The life of a case: events that change, are cancelled, or go; nodes that vanish; people who step in."""

from __future__ import annotations

import json

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import POOL, PREFIX, Scene
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
