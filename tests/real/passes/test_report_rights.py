"""`report` with the permissions of a person: what it can do without, and the role that we ship for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.manifests.applying import applied
from tests.real.manifests.permissions import built
from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_drains import cover
from tests.support.controlplane.waiting import wait_for

NAMESPACE = "default"
RBAC = "apis/rbac.authorization.k8s.io/v1"
NODES_AND_PODS = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]}]


def reader(scene: Scene, name: str, role: str) -> Path:
    """Make an account with this ClusterRole; the kubeconfig of it."""
    scene.api.create("serviceaccounts", {"metadata": {"name": name, "namespace": NAMESPACE}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    scene.api.request("POST", f"{RBAC}/clusterrolebindings", binding)
    return scene.controlplane.kubeconfig_for(name, NAMESPACE)


def removed(scene: Scene, name: str) -> None:
    scene.api.request("DELETE", f"{RBAC}/clusterrolebindings/{name}")


def reported(programs: Programs, kubeconfig: Path, config: Path | None = None) -> Done:
    """Run a report once the server knows the rights, which takes it a moment."""

    def ran() -> Done | None:
        done = programs.run("report", "--format", "json", config=config, kubeconfig=kubeconfig)
        return None if done.code == 3 else done

    return wait_for("the rights", ran)


@pytest.mark.slow
def test_with_nodes_and_pods_alone_the_preview_is_there_and_the_rest_is_listed(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    cover(scene, "web")
    scene.condition_tells(node)
    role = {"metadata": {"name": "nodes-and-pods"}, "rules": NODES_AND_PODS}
    scene.api.request("POST", f"{RBAC}/clusterroles", role)
    kubeconfig = reader(scene, "nodes-and-pods", "nodes-and-pods")
    try:
        done = reported(programs, kubeconfig)
    finally:
        removed(scene, "nodes-and-pods")
        scene.api.request("DELETE", f"{RBAC}/clusterroles/nodes-and-pods")

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
    with applied(scene.controlplane, "base"), applied(scene.controlplane, "report"):
        kubeconfig = reader(scene, "reporter", role["metadata"]["name"])
        try:
            done = reported(programs, kubeconfig, source)
            readiness = programs.run(
                "readiness", "--output", "json", "--config", str(source), kubeconfig=kubeconfig
            )
        finally:
            removed(scene, "reporter")

    assert done.document["unseen"] == []
    assert (readiness.code, readiness.document["unseen"]) == (0, [])
    assert done.document["mode"] == "Observe"
    assert done.document["settings"]["hash"]
    assert done.node(node)["preview"]["blockers"] == []
