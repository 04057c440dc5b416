"""Somebody removes our annotations in the middle of a case: managedFields shows whose the cordon is."""

from __future__ import annotations

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import PREFIX, Scene
from tests.support.controlplane.api import path_of


def lose(scene: Scene, node: str) -> None:
    """Remove all that is ours from a node, except the cordon."""
    nothing = {key: None for key in scene.api.get("nodes", node)["metadata"]["annotations"] if PREFIX in key}
    gone = {"annotations": nothing, "labels": {f"{PREFIX}/state": None}}
    scene.api.patch("nodes", node, {"metadata": gone})
    assert scene.record(node) is None
    assert scene.cordoned(node)


def test_a_node_that_lost_its_record_is_uncordoned_in_the_end(scene: Scene) -> None:
    node = scene.node()
    scene.condition_tells(node)
    scene.run()
    assert scene.cordoned(node)
    lose(scene, node)

    report = scene.run()
    assert "somebody removed its record" in report.text
    assert scene.record(node) is not None
    scene.finish()
    scene.condition_silent(node)
    scene.clock.advance(minutes=1)
    scene.run()
    scene.clock.advance(hours=1)
    scene.condition_silent(node)
    scene.run()

    assert scene.is_untouched(node)


@pytest.mark.parametrize("by", ["kubectl cordon", "another tool"])
def test_a_cordon_of_others_stays(scene: Scene, by: str) -> None:
    node = scene.node()
    if by == "kubectl cordon":
        # First ours, then uncordoned and cordoned by a person.
        scene.condition_tells(node)
        scene.run()
        scene.condition_silent(node)
        lose(scene, node)
        scene.api.patch("nodes", node, {"spec": {"unschedulable": None}})
    scene.api.patch("nodes", node, {"spec": {"unschedulable": True}})
    for _ in range(3):
        scene.condition_silent(node)
        scene.run()
        scene.clock.advance(hours=1)

    assert scene.cordoned(node)
    assert scene.record(node) is None


def test_a_drain_by_hand_that_lost_its_record_stays_as_it_is(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    assert programs.run("drain", node).code == 0
    lose(scene, node)
    for _ in range(3):
        scene.condition_silent(node)
        scene.run()
        scene.clock.advance(hours=1)

    assert scene.cordoned(node)
    assert scene.record(node) is None


def test_a_hundred_foreign_cordons_are_asked_about_a_few_at_a_time(scene: Scene) -> None:
    nodes = [scene.node(number) for number in range(25)]
    for node in nodes:
        scene.api.patch("nodes", node, {"spec": {"unschedulable": True}})
    asked = []
    for _ in range(3):
        scene.run()
        found = scene.asked("get")
        asked.append(sum(one.resource == "nodes" and one.name in nodes for one in found))

    # Each node once, and no more than twenty in a pass.
    assert asked == [20, 25, 25]


@pytest.mark.parametrize(("by", "words"), [("kubectl uncordon", "someone"), ("gpu-driver-manager", None)])
def test_after_an_uncordon_by_hand_the_event_stays_with_who_did_it(
    scene: Scene, by: str, words: str | None
) -> None:
    node = scene.node()
    scene.condition_tells(node)
    scene.run()
    assert scene.cordoned(node)
    if words is not None:
        scene.uncordon(node)
    else:
        applied = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
        scene.api.request(
            "PATCH",
            path_of("nodes", node, None, None),
            {**applied, "spec": {"unschedulable": False}},
            query={"fieldManager": by, "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
    scene.run()
    report = scene.run()

    assert not scene.cordoned(node)
    reason = report.holds(node)["dismissed"]
    assert f"{words or by} uncordoned the node at" in reason
    assert f"reconciler release {node} lets the reconciler drain it again" in reason
