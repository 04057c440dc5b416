"""`report` with the permissions of a person: what it can do without, and the role that we ship for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.manifests.applying import applied, built
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import ENFORCE, Done, Object, Programs
from tests.real.passes.scene import Scene


def reported(programs: Programs, kubeconfig: Path, config: Path | None = None) -> Done:
    return once_permitted(
        lambda: programs.run("report", "--output", "json", config=config, kubeconfig=kubeconfig)
    )


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


@pytest.mark.slow
def test_a_tenant_sees_the_own_pods_with_the_right_to_list_nodes_and_else_what_gives_it(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    (web,) = scene.workload("web", node)
    programs.configure(ENFORCE)
    scene.condition_tells(node)
    own: Object = {
        "apiGroups": ["", "policy"],
        "resources": ["pods", "poddisruptionbudgets"],
        "verbs": ["list"],
    }
    metadata: Object = {"name": "tenant"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", **metadata}
    subjects = [
        {"kind": "ServiceAccount", "name": name, "namespace": "default"} for name in ("tenant", "lister")
    ]
    bodies: dict[str, Object] = {
        "roles": {"rules": [own]},
        "rolebindings": {"roleRef": role, "subjects": subjects},
    }
    for kind, body in bodies.items():
        scene.api.create(kind, {**body, "metadata": metadata})
    try:
        with account(scene, "tenant", []) as kubeconfig:
            refused = programs.run("plan", "-n", "default", kubeconfig=kubeconfig)
        nodes: Object = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
        with account(scene, "lister", [nodes]) as kubeconfig:
            plan = once_permitted(
                lambda: programs.run("plan", "-n", "default", "-o", "json", kubeconfig=kubeconfig)
            )
    finally:
        for kind in bodies:
            scene.api.delete(kind, "tenant")

    assert refused.code == 3
    assert refused.err.startswith("you may not list nodes as system:serviceaccount:default:tenant. ")
    assert "--serviceaccount default:tenant`" in refused.err
    assert plan.code == 0, plan.err
    assert [(move["pod"], move["node"], move["answer"]) for move in plan.document["pods"]] == [
        (f"default/{web}", node, "moves")
    ]
