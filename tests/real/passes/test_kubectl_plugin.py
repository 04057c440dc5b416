"""The plugin as its users run it: the real kubectl finds it in PATH, and passes everything on to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.passes.scene import Scene
from tests.support.controlplane.server import ControlPlane

ROOT = Path(__file__).parents[3]


class Kubectl:
    """The kubectl of the control plane, with a folder in PATH that has the plugin as pip installs it."""

    def __init__(self, controlplane: ControlPlane, folder: Path) -> None:
        self._kubectl = controlplane.kubectl
        self._kubeconfig = controlplane.kubeconfig
        self._folder = folder
        self.install("kubectl-maintenance")

    def install(self, name: str) -> None:
        file = self._folder / name
        text = f"#!{sys.executable}\nimport sys\nfrom jobs.__main__ import main\nsys.exit(main())\n"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._kubectl, *arguments],
            env={
                "PATH": f"{self._folder}{os.pathsep}{os.defpath}",
                "HOME": str(self._folder),
                "KUBECONFIG": str(self._kubeconfig),
                "PYTHONPATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture
def kubectl(cluster: ControlPlane, tmp_path: Path) -> Kubectl:
    return Kubectl(cluster, tmp_path)


def test_kubectl_runs_the_plugin_on_its_cluster_and_returns_its_exit_code(
    scene: Scene, kubectl: Kubectl
) -> None:
    node = scene.node()
    scene.condition_tells(node)

    report = kubectl("maintenance", "report", node, "-o", "json")
    unknown = kubectl("maintenance", "report", "-n", "node-maintenance", "no-such-node")
    no_context = kubectl("maintenance", "report", "--context", "no-such-context")

    assert (report.returncode, report.stderr) == (0, "")
    assert [one["name"] for one in json.loads(report.stdout)["nodes"]] == [node]
    assert unknown.returncode == 1
    assert "no-such-node: there is no such node" in unknown.stderr
    assert no_context.returncode == 3
    assert "no-such-context" in no_context.stderr


def test_help_of_the_plugin_through_kubectl_names_it(kubectl: Kubectl) -> None:
    done = kubectl("maintenance", "resume", "--help")

    assert done.returncode == 0
    assert done.stdout.startswith("Usage: kubectl maintenance resume ")
