"""An event from each source is drained for or ignored, as the default settings say."""

from __future__ import annotations

import pytest

from tests.real.passes.scene import MONDAY_NOON, Scene


@pytest.fixture(autouse=True)
def monday(scene: Scene) -> None:
    scene.clock.set(MONDAY_NOON)


def test_the_node_condition_imds_and_a_request_each_lead_to_a_drain(scene: Scene) -> None:
    scene.set("budget: {maxUnavailable: 3}")
    nodes = [scene.node(instance) for instance in range(3)]
    for node, workload in zip(nodes, ("web", "shop", "cache"), strict=True):
        scene.workload(workload, node)
    by_condition, by_imds, by_hand = nodes

    scene.condition_tells(by_condition)
    scene.imds_tells(1, scene.event(1))
    scene.annotate(by_hand, "request", '{"kind": "Reboot"}')
    report = scene.finish()

    for node, source in (
        (by_condition, "condition:VMEventScheduled"),
        (by_imds, "imds"),
        (by_hand, "request"),
    ):
        assert scene.cordoned(node)
        assert scene.pods_on(node) == []
        assert scene.state(node) == report.node(node)["state"] == "in-maintenance"
        (event,) = report.node(node)["events"]
        assert (event["kind"], event["status"], event["sources"]) == ("Reboot", "Scheduled", [source])
