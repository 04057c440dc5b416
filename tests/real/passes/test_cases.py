"""The life of a case: events that change, are cancelled, or go; nodes that vanish; people who step in."""

from __future__ import annotations

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import PREFIX, Scene

ID = "11111111-AAAA-4000-8000-000000000001"


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
