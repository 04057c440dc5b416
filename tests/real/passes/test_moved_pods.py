"""`reconciler pods`, typed by somebody whose pod runs elsewhere in the morning."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
    elsewhere = programs.run("pods", "-n", "other", "--config", str(programs.config))

    (pod,) = of_cluster.document["pods"]
    lines: list[dict[str, Any]] = [json.loads(line) for line in history.read_text().splitlines()]
    assert swept.err == ""
    assert (pod["pod"], pod["node"], pod["why"]) == (f"default/{web}", node, "Reboot without a date")
    assert of_file.document["pods"] == [pod]
    assert lines[0]["event"] == "evicted"
    assert pod["case"]
    assert f" {web} (ReplicaSet/" in text.out
    assert "no pod of other was moved since" in elsewhere.out
