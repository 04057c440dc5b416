"""`reconciler pods`, typed by somebody whose pods drains move."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.moments import to_text
from tests.real.manifests.applying import applied, built
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene

pytestmark = pytest.mark.slow


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
