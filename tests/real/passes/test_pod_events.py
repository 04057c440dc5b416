"""Events on evicted pods and their owners, on the real API server, under the rights of the manifests."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from reconciler.features.events.pod_events import EVICTED, MOVES
from tests.real.manifests.applying import applied, kubectl
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Object, Scene
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.waiting import wait_for
from tests.support.controlplane.workloads import deployment

pytestmark = pytest.mark.slow

SETTINGS = "mode: Enforce\nbudget: {spacing: 1s}\n"


def about_pods(scene: Scene, namespace: str = "default") -> list[Object]:
    """The Events that drains wrote about pods and their owners."""
    return [one for one in scene.api.list("events", namespace) if one["reason"] in (EVICTED, MOVES)]


def described(controlplane: ControlPlane, kind: str, name: str) -> str:
    """What `kubectl describe` shows."""
    return kubectl(controlplane, "describe", kind, name)


def account(controlplane: ControlPlane) -> Path:
    wait_for(
        "the account", lambda: controlplane.api.find("serviceaccounts", "reconciler", "node-maintenance")
    )
    return controlplane.kubeconfig_for("reconciler", "node-maintenance")


def test_a_drain_says_once_on_a_deployment_who_evicted_its_pods_and_why(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(f"{SETTINGS}timeZone: Europe/Berlin\n")
    node = scene.node()
    scene.workload("web", node, replicas=3)
    scene.condition_tells(node, "Redeploy")
    owner = scene.api.get("deployments", "web", "default")

    done = programs.sweep("--for", "30s")

    assert done.code == 0, done.err
    (moves,) = about_pods(scene)
    assert moves["reason"] == MOVES
    assert moves["involvedObject"]["uid"] == owner["metadata"]["uid"]
    said, _, moment = moves["message"].partition(" at ")
    assert said == f"pods are evicted from node {node} by node-maintenance-reconciler: Redeploy"
    assert moment.endswith("(Europe/Berlin)")
    assert datetime.fromisoformat(moves["lastTimestamp"]).tzinfo is not None
    assert MOVES in described(scene.controlplane, "deployment", "web")


def test_without_the_permission_the_drain_goes_on(scene: Scene, programs: Programs) -> None:
    programs.configure(SETTINGS)
    node = scene.node()
    scene.api.create_namespace("team")
    scene.deploy(deployment("web", 1, namespace="team"))
    with applied(scene.controlplane, "base"):
        kubectl(scene.controlplane, "delete", "clusterrolebinding", "node-maintenance-reconciler-pod-events")
        scene.condition_tells(node)

        done = programs.sweep("--for", "30s", kubeconfig=account(scene.controlplane))

    assert done.code == 0, done.err
    assert "needs create events in team" in done.err
    assert scene.pods_on(node) == []
    assert about_pods(scene, "team") == []
