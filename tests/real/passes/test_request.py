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


def test_nothing_is_written_unless_all_can_be(scene: Scene, programs: Programs) -> None:
    free, taken = scene.node(0), scene.node(1)
    ahead = ask(programs, taken, "--kind", "Redeploy", "--not-before", "+2h", "--reason", "a\nb")
    assert ahead.code == 0
    assert "  planned   starts at " in ahead.out

    refused = ask(programs, free, taken, "--kind", "Reboot")
    unknown = ask(programs, free, f"{free}x", "--kind", "Reboot")

    assert refused.code == 1
    line, *rest = refused.err.splitlines()
    assert line.startswith(f"{taken}: it has another request: Redeploy, not before ")
    assert line.endswith(" UTC, “a b”; --replace overwrites it, --cancel removes it")
    assert rest == ["nothing was written"]
    assert (unknown.code, unknown.err) == (1, f"{free}x: there is no such node; did you mean {free}?\n")
    assert asked_of(scene, free) is None

    both = ask(programs, free, taken, "--kind", "Reboot", "--replace")

    assert both.code == 0, both.err
    assert asked_of(scene, free) == asked_of(scene, taken) == {"kind": "Reboot"}


def test_a_mistake_is_told_before_the_cluster_is_asked(programs: Programs, scene: Scene) -> None:
    node, nowhere = scene.node(), Path("/no/such/kubeconfig")
    programs.configure(f"{ENFORCE}timeZone: Europe/Berlin\n")
    for arguments, said in (
        (("--kind", "Nap"), "kind is 'Nap'; write one of Freeze,"),
        (
            ("--kind", "Reboot", "--not-before", "2020-01-01"),
            "Wed 2020-01-01 00:00 CET (Europe/Berlin) is not in",
        ),
        (("--kind", "Reboot", "--cancel"), "--cancel removes the whole request"),
        ((), "give --kind, or --cancel"),
    ):
        done = ask(programs, node, *arguments, kubeconfig=nowhere)
        assert (done.code, said in done.err) == (2, True), done.err
    programs.configure(f"{ENFORCE}sources: {{requests: {{enabled: false}}}}\n")
    off = ask(programs, node, "--kind", "Reboot", kubeconfig=nowhere)

    assert (off.code, "set sources.requests.enabled: true" in off.err) == (2, True)
    assert asked_of(scene, node) is None


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


def test_a_report_of_some_nodes_has_their_rows_and_the_counts_of_the_fleet(
    scene: Scene, programs: Programs
) -> None:
    due, other, quiet = scene.node(0), scene.node(1), scene.node(2)
    assert ask(programs, due, other, "--kind", "Reboot").code == 0

    one = programs.run("report", due, quiet, "--format", "json")
    planned = programs.run("report", "--only", "planned")
    draining = programs.run("report", "--only", "draining", "--format", "json")
    unknown = programs.run("report", "nobody")

    assert one.code == 0, one.err
    assert [node["name"] for node in one.document["nodes"]] == [due]
    assert one.document["lookedAfter"] == 3
    assert one.document["filter"]["quiet"] == [quiet]
    assert "rows: 2 of 2 shown (only planned)" in planned.out
    assert draining.document["nodes"] == []
    assert (unknown.code, unknown.out, unknown.err) == (1, "", "nobody: there is no such node\n")
