"""Since when a place is taken comes from the API server, and one of a machine that is gone is free."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.real.passes.scene import Scene

ONE = "budget: {maxUnavailable: 1}"
DAY = 24 * 60


@pytest.mark.parametrize(("days", "missed"), [(2, True), (5, False)])
def test_a_cordon_of_three_days_is_assumed_to_stay_for_three_more(
    scene: Scene, days: int, missed: bool
) -> None:
    scene.set(ONE)
    node, other = scene.node(), scene.node(1)
    since = (scene.now - timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    # As kubectl cordon and the node lifecycle controller write it.
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": since}
    scene.api.patch("nodes", other, {"spec": {"unschedulable": True, "taints": [taint]}})
    scene.condition_tells(node, minutes=days * DAY)

    planned = scene.run().node(node)["schedule"]
    assert planned["missed"] is missed
    assert missed or planned["plannedStart"] <= planned["latestStart"]


def test_a_preempted_node_gives_its_place_on_once_it_is_not_ready_and_does_not_come_back(
    scene: Scene,
) -> None:
    scene.set(ONE)
    node, other = scene.node(), scene.node(1)
    scene.condition_tells(other, "Preempt", minutes=0.5)
    report = scene.finish()
    assert report.node(other)["schedule"]["comesBack"] is False
    assert report.node(other)["schedule"].get("ends") is None

    scene.clock.advance(minutes=1)
    scene.condition(other, "Ready", "False")
    scene.condition_tells(node, minutes=10)
    report = scene.run()
    assert scene.cordoned(node)
    assert "Preempt has taken the machine" in report.holds(other)["machineComesBack"]
