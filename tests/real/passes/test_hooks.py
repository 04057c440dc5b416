"""Hooks on the real API server: annotations, and Jobs that the Job controller runs."""

from __future__ import annotations

from typing import Any

from tests.real.passes.scene import HOOKS_IN, PREFIX, Scene
from tests.support.controlplane.processes import wait_for

Object = dict[str, Any]

JOB = """\
uncordon: {settle: 0s}
hooks:
  preDrain:
  - name: move-leader
    job:
      spec:
        backoffLimit: 0
        template:
          spec:
            containers:
            - {name: move, image: example.com/move, env: [{name: LEVEL, value: info}]}
"""


def hooked(scene: Scene, settings: str = "uncordon: {settle: 0s}") -> str:
    """A node with a pod, and an event that drains it at once; the first pass has run."""
    scene.set(settings)
    node = scene.node(0)
    scene.workload("web", node)
    scene.annotate(node, "request", '{"kind": "Reboot"}')
    return node


def jobs(scene: Scene) -> list[Object]:
    return list(scene.api.list("jobs", labels=f"{PREFIX}/hook"))


def end(scene: Scene, phase: str) -> Object:
    """Let the container of the only Job end; return the Job once its controller has seen that."""
    (job,) = jobs(scene)
    selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"
    (pod,) = wait_for("the pod of the Job", lambda: scene.api.list("pods", labels=selector))
    name = pod["metadata"]["name"]
    scene.api.patch("pods", name, {"status": {"phase": phase}}, namespace=HOOKS_IN, subresource="status")

    def ended() -> Object | None:
        (found,) = jobs(scene)
        said = {one["type"] for one in found["status"].get("conditions", []) if one["status"] == "True"}
        return found if said & {"Complete", "Failed"} else None

    return wait_for("the end of the Job", ended)


def test_a_job_is_created_once_and_its_success_lets_the_drain_begin(scene: Scene) -> None:
    node = hooked(scene, JOB)
    scene.run()
    scene.new_process()
    report = scene.run()
    (job,) = jobs(scene)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    env = {one["name"]: one.get("value") for one in container["env"]}

    assert "runs" in report.holds(node)["preDrainHooksDone"]
    assert scene.pods_on(node) == ["web"]
    assert (env["NODE_NAME"], env["HOOK_STEP"], env["LEVEL"]) == (node, "pre-drain", "info")
    assert job["spec"]["activeDeadlineSeconds"] == 600
    assert [(one["kind"], one["name"]) for one in job["metadata"]["ownerReferences"]] == [("Node", node)]

    end(scene, "Succeeded")
    scene.finish()
    assert scene.pods_on(node) == []
    scene.api.delete("jobs", job["metadata"]["name"], namespace=HOOKS_IN, grace=0)
    wait_for("the end of the Job", lambda: not jobs(scene))
    scene.run()
    assert jobs(scene) == []
