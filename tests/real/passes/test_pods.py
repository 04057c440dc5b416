"""`reconciler pods`, typed by somebody whose pods drains move, also with the rights of a team alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.pods import PUBLISHED
from reconciler.model.moments import to_text
from tests.real.forks import DEFAULTS
from tests.real.manifests.applying import applied, built
from tests.real.manifests.permissions import granted, missing, unused, used
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import ENFORCE, Done, Object, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.processes import wait_for

pytestmark = pytest.mark.slow

SYSTEM = "node-maintenance"
SOON = {"jobs.runtime.line_keeper:Keeper.__init__": {"every": 0.2}}
"""The thread that writes does so more often than every minute."""


@contextmanager
def team(scene: Scene) -> Iterator[Path]:
    """The kubeconfig of an account that may read the namespace default, and nothing else."""
    name = {"name": "team", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    scene.api.create("serviceaccounts", {"metadata": {"name": "team"}})
    bound = {"metadata": {"name": "team"}, "roleRef": role, "subjects": [{"kind": "ServiceAccount", **name}]}
    scene.api.create("rolebindings", bound)
    try:
        yield scene.controlplane.kubeconfig_for("team", "default")
    finally:
        scene.api.delete("rolebindings", "team")


def served(scene: Scene, programs: Programs, text: str = "pods: {publish: true}\n") -> Running:
    """`serve` with these settings and the rights of the manifests."""
    programs.configure(f"{ENFORCE}{text}")
    kubeconfig = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)
    return programs.start("serve", "--every", "1s", kubeconfig=kubeconfig, pod={DEFAULTS: json.dumps(SOON)})


def asked(programs: Programs, kubeconfig: Path, *options: str) -> Done:
    return programs.run("pods", "-n", "default", *options, kubeconfig=kubeconfig)


def told(scene: Scene) -> Object | None:
    return scene.api.find("configmaps", PUBLISHED, "default")


def test_what_a_sweep_has_moved_is_kept_in_the_cluster_and_in_the_file(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node(0)
    (web,) = scene.workload("web", node)
    programs.configure(ENFORCE)
    history = programs.config.with_name("history.jsonl")
    scene.annotate(node, "request", '{"kind": "Reboot"}')

    swept = programs.sweep("--for", "60s", "--history", str(history))
    of_cluster = programs.run("pods", "-n", "default", "--config", str(programs.config), "-o", "json")
    of_file = programs.run("pods", "-A", "--history", str(history), "-o", "json")
    text = programs.run("pods", "-n", "default", "--config", str(programs.config))
    gone = programs.run("explain", f"default/{web}", "--config", str(programs.config))
    elsewhere = programs.run("pods", "-n", "other", "--config", str(programs.config))

    (pod,) = of_cluster.document["pods"]
    lines: list[dict[str, Any]] = [json.loads(line) for line in history.read_text().splitlines()]
    assert swept.err == ""
    assert (pod["pod"], pod["node"], pod["why"]) == (f"default/{web}", node, "Reboot without a date")
    assert of_file.document["pods"] == [pod]
    assert lines[0]["event"] == "evicted"
    assert pod["case"]
    assert f" {web} (ReplicaSet/" in text.out
    assert f": evicted from {node}: Reboot without a date (ReplicaSet/web-" in gone.out
    assert "no pod of other was moved since" in elsewhere.out


def test_with_the_role_that_we_ship_a_person_sees_which_pods_move_tonight(
    scene: Scene, programs: Programs
) -> None:
    node, quiet = scene.node(0), scene.node(1)
    (web,) = scene.workload("web", node)
    scene.workload("db", quiet)
    soon = to_text(datetime.now(UTC) + timedelta(hours=1))
    scene.annotate(node, "request", json.dumps({"kind": "Reboot", "notBefore": soon}))
    (role,) = built("report")
    with applied(scene.controlplane, "report"), account(scene, role["metadata"]["name"]) as kubeconfig:
        done = once_permitted(
            lambda: programs.run(
                *("pods", "-n", "default", "--tonight", "-o", "json", "--config", str(programs.config)),
                kubeconfig=kubeconfig,
            )
        )

    (pod,) = done.document["pods"]
    assert (pod["pod"], pod["node"], pod["answer"]) == (f"default/{web}", node, "moves")
    assert pod["why"] == f"Reboot at {soon}"


def test_a_team_without_the_right_to_read_nodes_sees_what_was_moved_and_what_moves_tonight(
    scene: Scene, programs: Programs
) -> None:
    node, later = scene.node(0), scene.node(1)
    (web,) = scene.workload("web", node)
    (db,) = scene.workload("db", later)
    soon = to_text(datetime.now(UTC) + timedelta(hours=2))
    scene.annotate(later, "request", json.dumps({"kind": "Reboot", "notBefore": soon}))
    with applied(scene.controlplane, "base"), applied(scene.controlplane, "pods"), team(scene) as kubeconfig:
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        none = asked(programs, kubeconfig, "--tonight")
        serving = served(scene, programs)
        serving.does("the coming pod", lambda: (told(scene) or {"data": {}})["data"].get("tonight"))
        tonight = asked(programs, kubeconfig, "--tonight", "-o", "json")
        said = asked(programs, kubeconfig, "--tonight")
        scene.annotate(node, "request", '{"kind": "Reboot"}')
        serving.does("the end of the drain", lambda: not scene.pods_on(node))
        serving.kill()
        scene.free_lock()
        # Another process does not have to wait until the namespace may be written again.
        serving = served(scene, programs)
        serving.does("the moved pod", lambda: (told(scene) or {"data": {}})["data"].get("moved"))
        moved = asked(programs, kubeconfig, "-o", "json")
        gone = programs.run("explain", f"default/{web}", kubeconfig=kubeconfig)
        programs.configure(ENFORCE)
        serving.does("the deletion", lambda: told(scene) is None)
        serving.kill()

    assert none.code == 3
    assert f"the ConfigMap default/{PUBLISHED} does not exist: `pods.publish`" in none.err
    (coming,) = tonight.document["pods"]
    assert (coming["pod"], coming["node"], coming["answer"]) == (f"default/{db}", later, "moves")
    assert tonight.document["source"] == f"the ConfigMap default/{PUBLISHED}"
    assert f"{db} (" in said.out
    assert [(pod["pod"], pod["node"]) for pod in moved.document["pods"]] == [(f"default/{web}", node)]
    assert f": evicted from {node}: Reboot without a date (ReplicaSet/web-" in gone.out
    assert "what runs instead is not known: needs list nodes" in gone.out
    entries = used(scene.controlplane.audit_entries())
    assert missing(granted("base") | granted("pods"), entries) == set()
    assert unused(granted("pods"), entries) == set()


def test_the_token_can_create_no_other_config_map_in_another_namespace(
    scene: Scene, programs: Programs
) -> None:
    with applied(scene.controlplane, "base"), applied(scene.controlplane, "pods"):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        with Api(scene.controlplane.kubeconfig_for("reconciler", SYSTEM), user_agent="tests") as api:

            def created(name: str, namespace: str) -> str:
                body = {"metadata": {"name": name}}
                path = f"api/v1/namespaces/{namespace}/configmaps"
                try:
                    api.request("POST", path, body, query={"dryRun": "All"})
                except ApiError as error:
                    return str(error)
                return ""

            wait_for("the policy", lambda: "may create no ConfigMap but" in created("other", "default"))
            assert created(PUBLISHED, "default") == ""
            assert created("node-maintenance-ledger", SYSTEM) == ""
