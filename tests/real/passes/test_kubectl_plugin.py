"""The plugin as its users run it: the real kubectl finds it in PATH, and passes everything on to it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.real.passes.scene import POOL, Scene
from tests.support.controlplane.server import ControlPlane
from tests.support.terminal import install


class Kubectl:
    """The kubectl of the control plane, with a folder in PATH that has the plugin as pip installs it."""

    def __init__(self, controlplane: ControlPlane, folder: Path) -> None:
        self._kubectl = controlplane.kubectl
        self._kubeconfig = controlplane.kubeconfig
        self._environment = install(folder, "kubectl-maintenance", "kubectl_complete-maintenance")

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._kubectl, *arguments],
            env={**self._environment, "KUBECONFIG": str(self._kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def completes(self, *words: str) -> list[str]:
        """Return what kubectl offers as the last of these words."""
        done = self("__complete", "maintenance", *words)
        *lines, directive = done.stdout.splitlines()
        assert directive == ":4", done.stderr
        return [line.partition("\t")[0] for line in lines]


@pytest.fixture
def kubectl(cluster: ControlPlane, tmp_path: Path) -> Kubectl:
    return Kubectl(cluster, tmp_path)


def test_kubectl_runs_the_plugin_on_its_cluster_and_returns_its_exit_code(
    scene: Scene, kubectl: Kubectl
) -> None:
    node = scene.node()
    scene.condition_tells(node)

    report = kubectl("maintenance", "report", node, "-o", "json")
    unknown = kubectl("maintenance", "report", "--reconciler-namespace", "node-maintenance", "no-such-node")
    no_context = kubectl("maintenance", "report", "--context", "no-such-context")

    assert report.returncode == 0
    assert report.stderr.startswith("default settings: ")
    assert [one["name"] for one in json.loads(report.stdout)["nodes"]] == [node]
    assert unknown.returncode == 1
    assert "no-such-node: there is no such node" in unknown.stderr
    assert no_context.returncode == 3
    assert "no-such-context" in no_context.stderr


def test_kubectl_completes_names_of_the_cluster(scene: Scene, kubectl: Kubectl) -> None:
    node = scene.node()
    pods = scene.workload("web", node)

    assert kubectl.completes("report", "") == [node]
    assert kubectl.completes("hold", "--pool", "") == [POOL.name]
    assert kubectl.completes("explain", "default/web") == [f"default/{pod}" for pod in sorted(pods)]
    assert kubectl.completes("report", "--namespace=kube-sys") == ["kube-system"]
