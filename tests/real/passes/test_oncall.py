"""The card for the person on call, typed from top to bottom on the API server: each command does its work."""

from __future__ import annotations

import re
import shlex

from tests.real.passes.processes import ROOT, Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for

PAGE = (ROOT / "docs" / "oncall.md").read_text(encoding="utf-8")
TYPED = [
    command
    for row in re.findall(r"^\| .+ \|$", PAGE, re.MULTILINE)
    for command in re.findall(r"`(reconciler [^`]+)`", row)
    # It opens a browser, and runs until Ctrl-C.
    if command != "reconciler page"
]


def test_each_command_of_the_card_works_in_the_order_of_the_card(scene: Scene, programs: Programs) -> None:
    waits, node = scene.node(0), scene.node(1)
    pod = scene.workload("web", node)[0]
    programs.configure("mode: Enforce\nevents: {Reboot: {approval: true}}\n")
    serve = programs.start("serve", "--every", "5s")
    serve.wait_for("leading")
    asked = programs.run("request", waits, "--kind", "Reboot", "--not-before", "20m")
    assert asked.code == 0, asked.err
    wait_for("a case", lambda: programs.run("report", "-o", "json").node(waits), seconds=60)
    names = {"NODE": node, "NAMESPACE/POD": f"default/{pod}", "NAMESPACE": "default"}
    held: dict[str, bool] = {}

    for command in TYPED:
        verb, *arguments = shlex.split(command)[1:]
        # Nothing is announced of the other node.
        typed = [
            (waits if verb in ("approve", "start") else names["NODE"])
            if word == "NODE"
            else names.get(word, word)
            for word in arguments
        ]
        settled = verb in ("explain", "hold", "resume", "approve", "start")
        config = ("--config", str(programs.config)) if settled else ()
        if verb == "start":
            # The approval before it has begun the drain, or this does; nobody is there to answer.
            typed.append("--yes")
        done = programs.run(verb, *typed, *config)
        assert done.code == 0, f"{command}: {done.out}{done.err}"

        annotations = scene.api.get("nodes", node)["metadata"].get("annotations", {})
        held[command] = "node-maintenance.dev/hold" in annotations

    assert len(TYPED) > 10
    assert (held["reconciler hold NODE --now"], held["reconciler resume NODE"]) == (True, False)
    assert not scene.api.get("nodes", node)["spec"].get("unschedulable")
    assert pod not in [each["metadata"]["name"] for each in scene.api.list("pods")]
