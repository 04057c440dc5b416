"""`reconciler request` and the report of some nodes, typed by a person who has just installed them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.passes.processes import ENFORCE, Done, Programs
from tests.real.passes.scene import PREFIX, Scene
from tests.support.controlplane.waiting import wait_for

pytestmark = pytest.mark.slow

RBAC = "apis/rbac.authorization.k8s.io/v1"
LOOKS = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]


def asked_of(scene: Scene, node: str) -> dict[str, Any] | None:
    """What the annotation of the node requests."""
    found = scene.api.get("nodes", node)["metadata"].get("annotations", {}).get(f"{PREFIX}/request")
    return None if found is None else dict(json.loads(found))


def ask(programs: Programs, *arguments: str, kubeconfig: Path | None = None) -> Done:
    return programs.run("request", *arguments, "--config", str(programs.config), kubeconfig=kubeconfig)


def test_a_request_is_written_carried_out_and_cancelled(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    scene.workload("web", node)
    programs.configure(ENFORCE)

    asked = ask(programs, node, "--kind", "reboot", "--id", "CHG-42", "--reason", "new \x1b[31mfirmware")

    assert asked.code == 0, asked.err
    assert asked_of(scene, node) == {"kind": "Reboot", "id": "CHG-42", "reason": "new \x1b[31mfirmware"}
    assert f"{node}: requested: Reboot, id CHG-42, “new \\x1b[31mfirmware”" in asked.out
    assert "would     cordon, drain" in asked.out
    assert not scene.cordoned(node)

    assert programs.sweep().code == 0
    assert scene.cordoned(node)
    assert ask(programs, node, "--kind", "Reboot", "--id", "CHG-42").code == 1
    gone = ask(programs, node, "--cancel")

    assert (gone.code, asked_of(scene, node)) == (0, None)
    assert f"{node}: request removed" in gone.out
    assert programs.sweep().code == 0
    assert not scene.cordoned(node)
    assert f"{node}: has no request" in ask(programs, node, "--cancel").out


def test_without_the_permission_to_patch_nodes_it_is_named(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    subject = {"kind": "ServiceAccount", "name": "looker", "namespace": "default"}
    scene.api.create("serviceaccounts", {"metadata": {"name": "looker", "namespace": "default"}})
    scene.api.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "looker"}, "rules": LOOKS})
    binding = {
        "metadata": {"name": "looker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looker"},
        "subjects": [subject],
    }
    scene.api.request("POST", f"{RBAC}/clusterrolebindings", binding)
    kubeconfig = scene.controlplane.kubeconfig_for("looker", "default")

    def ran() -> Done | None:
        done = programs.run("request", node, "--kind", "Reboot", kubeconfig=kubeconfig)
        return None if done.code == 3 else done

    try:
        done = wait_for("the rights", ran)
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            scene.api.request("DELETE", f"{RBAC}/{kind}/looker")

    assert done.code == 1
    assert f"{node}: not written: needs patch nodes" in done.err
    assert asked_of(scene, node) is None
