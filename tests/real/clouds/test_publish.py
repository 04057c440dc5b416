"""What others read of a case on a real API server: drainsafe's annotations and KEP-5683's conditions."""

from __future__ import annotations

from typing import Any

from reconciler.features.publishing.drainsafe import (
    DRAINSAFE_KEYS,
    DRAINSAFE_OWNER,
    DRAINSAFE_STATE,
    DRAINSAFE_TYPE,
)
from reconciler.model.node import LIFECYCLE
from tests.real.passes.scene import PREFIX, Scene

Object = dict[str, Any]
NO_SETTLING = "uncordon: {settle: 0s}\n"
BOTH = f"publish: [drainsafe, node-conditions]\n{NO_SETTLING}"


def borne(scene: Scene, node: str) -> dict[str, str]:
    """What of drainsafe's the node bears."""
    every = scene.api.get("nodes", node)["metadata"]["annotations"]
    return {key: text for key, text in every.items() if key in DRAINSAFE_KEYS}


def value(scene: Scene, node: str) -> str | None:
    return borne(scene, node).get(DRAINSAFE_STATE)


def conditions(scene: Scene, node: str) -> dict[str, Object]:
    every = scene.api.get("nodes", node)["status"]["conditions"]
    return {each["type"]: each for each in every if each["type"] in LIFECYCLE}


def true(scene: Scene, node: str) -> set[str]:
    return {kind for kind, found in conditions(scene, node).items() if found["status"] == "True"}


def test_a_case_goes_through_drainsafes_values_in_order_and_the_conditions_keep_up(scene: Scene) -> None:
    settings = f"{BOTH}events: {{Reboot: {{start: Early}}}}\n"
    scene.set(
        f"{settings}windows: [{{name: night, start: '22:00', end: '05:00'}}]\nbudget: {{maxUnavailable: 0}}"
    )
    scene.clock.set(scene.now.replace(hour=12, minute=0))
    node = scene.node()
    scene.workload("web", node, replicas=2)
    scene.imds_tells(0, scene.event(0, minutes=60 * 24))
    seen = []

    scene.run()
    seen.append((value(scene, node), true(scene, node)))
    scene.clock.set(scene.now.replace(hour=22, minute=1))
    scene.condition_silent(node)
    scene.run()
    seen.append((value(scene, node), true(scene, node)))
    scene.set(f"{settings}budget: {{maxUnavailable: 1}}")
    scene.run()
    seen.append((value(scene, node), true(scene, node)))
    scene.finish()
    seen.append((value(scene, node), true(scene, node)))
    scene.imds_tells(0, scene.event(0, minutes=-1, status="Started"))
    scene.run()
    seen.append((value(scene, node), true(scene, node)))
    started = borne(scene, node)
    scene.imds_tells(0)
    scene.run()
    scene.run()
    seen.append((value(scene, node), true(scene, node)))

    assert seen == [
        ("MaintenanceScheduled", {"MaintenancePlanned"}),
        ("NodeCordoning", {"MaintenancePlanned"}),
        ("NodeDraining", {"MaintenancePlanned", "DrainInProgress"}),
        ("NodeDrained", {"MaintenancePlanned", "Drained"}),
        ("MaintenanceStarted", {"MaintenanceInProgress", "Drained"}),
        ("NodeRunning", set()),
    ]
    assert started[DRAINSAFE_TYPE] == "Reboot"
    assert borne(scene, node) == {DRAINSAFE_STATE: "NodeRunning", DRAINSAFE_OWNER: PREFIX}
    assert conditions(scene, node) == {}
    assert not scene.cordoned(node)
