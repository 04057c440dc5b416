"""examples/maintenance-controller.yaml moves nodes as maintenance-controller does with such a file.

Its documentation (github.com/sapcc/maintenance-controller, docs/concepts.md, docs/examples.md): "a node can
only be in-maintenance for one profile at a time", and of its first example: "Then nodes wait for manual
approval before transitioning to the `in-maintenance` state."
"""

from __future__ import annotations

import json
from datetime import timedelta

from reconciler.run import run_pass
from reconciler.simulation.world import World
from tests.examples.playing import CACHE, LOGS, WEB, apps_on, example
from tests.simulation.building import name, world

SETTINGS = example("maintenance-controller")
PROFILE, STATE, DATA = (f"cloud.sap/maintenance-{word}" for word in ("profile", "state", "data"))
FLATCAR = "flatcar-linux-update.v1.flatcar-linux.net"
OUTDATED = "cloud.sap/kubelet-needs-update"


def passes(there: World, count: int = 3) -> None:
    for _ in range(count):
        run_pass(there.outside, SETTINGS, there.now)
        there.advance(timedelta(seconds=10))


def states(there: World, node: str) -> dict[str, str]:
    data = json.loads(there.cluster.nodes[node].annotations[DATA])
    return {profile: kept["Current"] for profile, kept in data["Profiles"].items()}


def test_a_reboot_waits_for_the_approval_of_a_person_each_time() -> None:
    there, node = world(2, WEB), name(0)
    there.cluster.label(node, PROFILE, "flatcar")
    for _ in range(2):
        there.cluster.annotate(node, f"{FLATCAR}/reboot-needed", "true")
        passes(there)
        assert states(there, node) == {"flatcar": "maintenance-required"}

        there.cluster.annotate(node, "cloud.sap/maintenance-approved", "true")
        passes(there)
        annotations = there.cluster.nodes[node].annotations
        assert annotations[f"{FLATCAR}/reboot-ok"] == "true"
        assert "cloud.sap/maintenance-approved" not in annotations

        there.cluster.annotate(node, f"{FLATCAR}/reboot-needed", None)
        passes(there)
        assert f"{FLATCAR}/reboot-ok" not in there.cluster.nodes[node].annotations
        assert there.cluster.nodes[node].labels[STATE] == "operational"
    assert apps_on(there, node) == {"web"}


def test_nodes_with_an_old_kubelet_are_emptied_one_after_another() -> None:
    there, nodes = world(3, WEB, CACHE, LOGS), [name(0), name(1)]
    for node in nodes:
        there.cluster.label(node, PROFILE, "flatcar--kubelet")
        there.cluster.label(node, OUTDATED, "true")
    passes(there, 12)
    assert [states(there, node)["kubelet"] for node in nodes] == ["in-maintenance", "maintenance-required"]
    assert apps_on(there, nodes[0]) == {"logs"}

    there.cluster.label(nodes[0], OUTDATED, "false")
    there.advance(timedelta(minutes=15))
    passes(there, 12)
    assert [there.cluster.nodes[node].unschedulable for node in nodes] == [False, True]
    assert [states(there, node)["kubelet"] for node in nodes] == ["operational", "in-maintenance"]


def test_the_state_of_every_node_is_shown() -> None:
    there = world(3, WEB)
    passes(there, 1)

    assert {node.labels[STATE] for node in there.cluster.nodes.values()} == {"operational"}
