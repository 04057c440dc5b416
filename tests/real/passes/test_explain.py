"""`reconciler explain`, typed by a person who wonders about a node and a pod."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.real.forks import DEFAULTS
from tests.real.passes.processes import ENFORCE, Done, Programs
from tests.real.passes.scene import EMPTY_DIR, Scene, cover
from tests.real.passes.test_writing_nothing import writes
from tests.support.controlplane.processes import wait_for

pytestmark = pytest.mark.slow

CLOSED = f"{ENFORCE}windows: [{{name: long-ago, start: 2020-01-01, end: 2020-01-02}}]\n"


def explain(programs: Programs, *arguments: str) -> Done:
    return programs.run("explain", *arguments, "--config", str(programs.config))


def test_a_node_and_its_pods_are_explained_and_nothing_is_written(scene: Scene, programs: Programs) -> None:
    node, quiet = scene.node(0), scene.node(1)
    (web,) = scene.workload("web", node)
    (cache,) = scene.workload("cache", node, volumes=EMPTY_DIR)
    cover(scene, "web")
    programs.configure(CLOSED)
    scene.annotate(node, "request", '{"kind": "Reboot", "id": "CHG-42"}')
    began = datetime.now(UTC)

    of_node = explain(programs, node, "--output", "json")
    of_web = explain(programs, f"default/{web}")
    of_cache = explain(programs, f"default/{cache}", "--output", "json")
    of_quiet = explain(programs, quiet)

    assert (of_node.code, of_web.code, of_cache.code, of_quiet.code) == (0, 0, 0, 0), of_web.err
    found = of_node.document["node"]
    assert {one["source"]: one["answer"] for one in found["readings"]}["request"] == "event"
    assert {one["code"] for one in found["obstacles"]} == {"windowOpen", "forecast", "budget", "pod"}
    assert {one["action"] for one in found["drainNow"]["pods"]} == {"evict", "keep"}
    assert f"default/{web} on {node} does not move: PodDisruptionBudget default/web requires" in of_web.out
    assert "  owner     Deployment default/web" in of_web.out
    assert "set events.Reboot.emptyDir: Evict" in of_cache.document["pod"]["reasons"][0]
    assert "  event     none: no source announces maintenance of this node\n" in of_quiet.out
    assert "  drain     a drain for a Reboot now would find no pod\n" in of_quiet.out
    assert writes(scene, began) == []


def test_a_pod_that_was_moved_says_what_its_events_say(scene: Scene, programs: Programs) -> None:
    node = scene.node(0)
    (web,) = scene.workload("web", node)
    programs.configure(ENFORCE)
    scene.annotate(node, "request", '{"kind": "Reboot"}')
    # The end of a sweep waits some seconds for Events, which nothing depends on. This process goes on.
    soon = {"reconciler.features.events.pod_events:PodEvents.__init__": {"behind": 0.0}}
    serve = programs.start("serve", "--every", "1s", pod={DEFAULTS: json.dumps(soon)})
    # Without this, many an explanation runs beside its start.
    wait_for("the end of the drain", lambda: not scene.pods_on(node), seconds=60, instead=serve.everything)
    last = ""

    def said() -> bool:
        nonlocal last
        last = explain(programs, f"default/{web}").out
        return "MaintenanceMovesPods on Deployment web" in last

    wait_for(
        "the Event about the Deployment", said, seconds=60, instead=lambda: f"{last}\n{serve.everything()}"
    )
