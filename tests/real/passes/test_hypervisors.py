"""A workflow with a Hypervisor, as `serve` runs it on the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane import hypervisors

pytestmark = pytest.mark.slow

STATE = "cloud.sap/maintenance-state"
FILE = """\
intervals: {requeue: 200ms}
instances:
  check:
  - {type: hasLabel, name: asked, config: {key: example.com/update}}
  - {type: checkHypervisor, name: evicted, config: {evicted: true, numInstances: 0}}
  - {type: hypervisorCondition, name: ready, config: {type: Ready, status: "True"}}
  trigger:
  - {type: alterHypervisor, name: move-instances, config: {maintenance: auto}}
  - {type: alterHypervisor, name: take-instances, config: {maintenance: ""}}
  - {type: eviction, name: cordon, config: {action: cordon}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
profiles:
- name: default
  operational:
    transitions: [{check: asked && ready, trigger: cordon && move-instances, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: evicted, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: "!asked", trigger: take-instances && uncordon, next: operational}]
"""


def test_a_node_waits_for_its_hypervisor_and_comes_back(scene: Scene, programs: Programs) -> None:
    node, other = scene.node(0), scene.node(1)
    hypervisors.install(scene.api)
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "numInstances": 2}
    hypervisors.make(scene.api, node, status=ready)
    untouched = hypervisors.make(scene.api, other, status=ready)
    programs.configure(FILE)
    process = programs.start("serve", "--every", "1h")
    process.wait_for("leading")

    def state() -> str | None:
        label: str | None = scene.api.get("nodes", node)["metadata"]["labels"].get(STATE)
        return label

    def spec() -> Any:
        return hypervisors.found(scene.api, node)["spec"].get("maintenance")

    process.does("first state", lambda: state() == "operational")
    scene.api.patch("nodes", node, {"metadata": {"labels": {"example.com/update": ""}}})
    process.does("wait for the instances", lambda: state() == "maintenance-required")
    assert (spec(), scene.api.get("nodes", node)["spec"]["unschedulable"]) == ("auto", True)

    hypervisors.report(scene.api, node, {"evicted": True, "numInstances": 0})
    process.does("maintenance", lambda: state() == "in-maintenance")

    scene.api.patch("nodes", node, {"metadata": {"labels": {"example.com/update": None}}})
    process.does("end of the maintenance", lambda: state() == "operational")
    assert spec() == ""
    assert "unschedulable" not in scene.api.get("nodes", node)["spec"]
    assert hypervisors.found(scene.api, other) == untouched
    assert process.terminate().code == 0
