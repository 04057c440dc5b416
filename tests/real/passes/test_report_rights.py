"""`report` with the permissions of a person: what it can do without, and the role that we ship for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.manifests.applying import applied
from tests.real.manifests.permissions import built
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_drains import cover

NODES_AND_PODS = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]}]


def reported(programs: Programs, kubeconfig: Path, config: Path | None = None) -> Done:
    return once_permitted(
        lambda: programs.run("report", "--format", "json", config=config, kubeconfig=kubeconfig)
    )


@pytest.mark.slow
def test_with_nodes_and_pods_alone_the_preview_is_there_and_the_rest_is_listed(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    scene.condition_tells(node)
    with account(scene, "nodes-and-pods", NODES_AND_PODS) as kubeconfig:
        done = reported(programs, kubeconfig)

    assert {one["needs"] for one in done.document["unseen"]} == {
        "get configmaps in node-maintenance",
        "get configmaps in kube-system",
        "get daemonsets.apps in node-maintenance-agent",
        "list poddisruptionbudgets.policy",
        "list namespaces",
    }
    preview = done.node(node)["preview"]
    assert [pod["action"] for pod in preview["pods"]] == ["evict"]
    assert {one["needs"] for one in preview["unknown"]} == {
        "list poddisruptionbudgets.policy",
        "list namespaces",
    }
    assert done.err == ""


@pytest.mark.slow
def test_with_the_role_that_we_ship_nothing_is_unseen_and_the_settings_are_those_of_the_cluster(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node)
    (role,) = built("report")
    source = Path("configmap/node-maintenance/maintenance-policy")
    with (
        applied(scene.controlplane, "base"),
        applied(scene.controlplane, "report"),
        account(scene, role["metadata"]["name"]) as kubeconfig,
    ):
        done = reported(programs, kubeconfig, source)
        readiness = programs.run(
            "readiness", "--output", "json", "--config", str(source), kubeconfig=kubeconfig
        )

    assert done.document["unseen"] == []
    assert (readiness.code, readiness.document["unseen"]) == (0, [])
    assert done.document["mode"] == "Observe"
    assert done.document["settings"]["hash"]
    assert done.node(node)["preview"]["blockers"] == []
