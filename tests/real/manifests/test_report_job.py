"""The report as a CronJob beside a reconciler that acts: what its Pods run, as their account."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.real.manifests.applying import K8S, applied, built, kubectl
from tests.real.manifests.permissions import used
from tests.real.passes.conftest import programs, scene
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for

__all__ = ["programs", "scene"]

NAMESPACE = "node-maintenance"
REPORT = "node-maintenance-report"


def test_two_reports_at_once_write_one_config_map_and_nothing_else(scene: Scene, programs: Programs) -> None:
    api = scene.api
    node = scene.node(0)
    scene.workload("web", node)
    (job,) = [one for one in built("report-configmap") if one["kind"] == "CronJob"]
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    arguments = [one.replace("$(POD_NAMESPACE)", NAMESPACE) for one in container["args"]]
    with applied(scene.controlplane, "deployment"), applied(scene.controlplane, "report-configmap"):
        settings = {"data": {"maintenance.yaml": "mode: Enforce\n"}}
        api.patch("configmaps", "maintenance-policy", settings, NAMESPACE)
        scene.condition_tells(node)
        # A Pod of the Deployment, which acts.
        kubeconfig = scene.controlplane.kubeconfig_for("reconciler", NAMESPACE)
        programs.configure("mode: Enforce\n")
        serving = programs.start("serve", "--every", "1h", kubeconfig=kubeconfig)
        serving.wait_for("leading")
        wait_for("the cordon", lambda: scene.cordoned(node))
        reading = scene.controlplane.kubeconfig_for("report", NAMESPACE)
        with ThreadPoolExecutor(2) as threads:
            first, second = threads.map(lambda _: programs.run(*arguments, kubeconfig=reading), range(2))

        for done in (first, second):
            assert done.code == 0, done.err
            assert node in done.out
            assert "reconciler: runs" in done.out
        kept = api.get("configmaps", REPORT, NAMESPACE)
        assert kept["data"].keys() == {"report"}
        assert kept["data"]["report"] in (first.out, second.out)
        asked = used(scene.asked(), f"system:serviceaccount:{NAMESPACE}:report")
        writes = {(one.verb, one.resource, one.name) for one in asked if one.verb not in ("get", "list")}
        assert writes == {("patch", "configmaps", REPORT)}
        assert [one for one in asked if one.code in (401, 403)] == []
        # Applying it again keeps the report.
        kubectl(scene.controlplane, "apply", "-k", str(K8S / "report-configmap"))
        assert api.get("configmaps", REPORT, NAMESPACE)["data"] == kept["data"]
        assert serving.terminate().code == 0
