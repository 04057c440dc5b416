"""`reconciler drain`: kubectl's flags, a claim that the passes respect, and what `release` undoes."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import EMPTY_DIR, Scene, cover
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import daemon_set, pod

pytestmark = pytest.mark.slow


def _daemon_pod(scene: Scene, node: str) -> None:
    scene.api.create("daemonsets", daemon_set("log"))
    wait_for("the DaemonSet's pod", lambda: "log" in scene.pods_on(node))


def _actions(document: dict[str, Any]) -> dict[str, str]:
    return {one["name"].split("-")[0]: one["action"] for one in document["pods"]}


def test_a_dry_run_lists_every_pod_with_its_action_and_writes_nothing(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.workload("cache", node, volumes=EMPTY_DIR)
    scene.api.create("pods", pod("naked", node_name=node, labels={"app": "naked"}))
    _daemon_pod(scene, node)

    plain = programs.run("drain", node, "--dry-run", "--output", "json")
    flags = ("--ignore-daemonsets", "--force", "--delete-emptydir-data", "--disable-eviction")
    allowed = programs.run("drain", node, *flags, "--dry-run", "--output", "json")

    assert plain.code == 1
    assert _actions(plain.document) == {"web": "evict", "cache": "refuse", "naked": "refuse", "log": "refuse"}
    assert allowed.code == 0
    assert _actions(allowed.document) == {
        "web": "delete",
        "cache": "delete",
        "naked": "delete",
        "log": "skip",
    }
    assert {one["namespace"] for one in allowed.document["pods"]} == {"default"}
    assert all(one["reasons"] for one in plain.document["pods"] if one["action"] == "refuse")
    assert not scene.cordoned(node)
    assert scene.record(node) is None


def test_a_node_is_emptied_and_release_undoes_it(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    scene.workload("web", node, replicas=3)
    scene.api.create("pods", pod("naked", node_name=node, labels={"app": "naked"}))
    _daemon_pod(scene, node)
    since = datetime.now(UTC)

    done = programs.run("drain", node, "--ignore-daemonsets", "--force", "--disable-eviction")

    assert done.code == 0, done.err
    # A fleet may be big; who names a node is not to pay for the others.
    assert "nodes" not in {one.resource for one in scene.asked("list", since=since)}
    assert "warning: deleting Pods that declare no controller: default/naked" in done.err
    assert scene.pods_on(node) == ["log"]
    assert scene.cordoned(node)

    assert programs.run("release", node).code == 0
    assert not scene.cordoned(node)
    assert scene.record(node) is None


def test_what_blocks_is_named_when_the_time_is_up_and_the_same_command_goes_on(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")

    blocked = programs.run("drain", node, "--timeout", "2s")

    assert blocked.code == 1
    assert "waits for PDB default/web: needs 1 healthy, has 1" in blocked.err
    told = {one["reason"]: one["message"] for one in scene.api.list("events") if one["type"] == "Warning"}
    assert "PDB default/web" in told["MaintenanceDrainTimedOut"]
    scene.api.delete("poddisruptionbudgets", "web", "default")
    again = programs.run("drain", node)
    assert again.code == 0, again.err
    assert "goes on" in again.out


def test_ctrl_c_evicts_nothing_more_and_leaves_what_can_be_gone_on_with(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    running = programs.start("drain", node)
    running.does("a refusal", lambda: "waits for PDB" in running.everything())

    running.signal(signal.SIGINT)

    assert running.wait().code == 128 + signal.SIGINT
    assert scene.cordoned(node)
    record = scene.record(node)
    assert record is not None
    assert record["cordon"]["claims"][0].startswith("person:")
    assert scene.pods_on(node) == ["web"]
