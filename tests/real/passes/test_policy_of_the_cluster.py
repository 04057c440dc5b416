"""Without --config and --prefix, commands use the settings that the manifests install."""

from __future__ import annotations

import pytest

from tests.real.manifests.applying import applied, built
from tests.real.passes.accounts import account
from tests.real.passes.processes import Done, Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for

pytestmark = pytest.mark.slow
DEFAULTS = "default settings: no ConfigMap node-maintenance/maintenance-policy in the cluster; pass --config"


def test_a_report_shows_the_policy_that_is_installed_with_the_role_that_we_ship(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    (role,) = built("report")

    def report(kubeconfig: str) -> Done:
        running = Running(["report", "-o", "json", "--kubeconfig", kubeconfig], None, programs.forks)
        try:
            return running.wait()
        finally:
            running.kill()

    assert report(str(programs.kubeconfig)).document["defaultSettings"] == DEFAULTS
    with (
        applied(scene.controlplane, "base"),
        applied(scene.controlplane, "report"),
        account(scene, role["metadata"]["name"]) as path,
    ):
        wait_for("the rights", lambda: report(str(path)).code == 0)
        before = report(str(path)).document
        scene.api.patch(
            "configmaps",
            "maintenance-policy",
            {"data": {"maintenance.yaml": "mode: Enforce\n"}},
            namespace="node-maintenance",
        )
        after = report(str(path)).document

    assert (before["mode"], before["defaultSettings"]) == ("Observe", None)
    assert (after["mode"], after["defaultSettings"]) == ("Enforce", None)
