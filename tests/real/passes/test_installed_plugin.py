"""The plugin of examples/ in an environment of its own: built, installed, and a node is drained by it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.model.moments import to_text
from tests.real.passes.scene import Scene

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
KEYS = "firmware.example.com"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python in an environment with the program, and the plugin as pip builds and installs it."""
    folder = tmp_path_factory.mktemp("plugin")
    venv.create(folder / "venv")
    (packages,) = folder.glob("venv/lib/python*/site-packages")
    # The program is that of this checkout, and its packages are those of the tests: no registry is asked.
    (packages / "tests.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    shutil.copytree(ROOT / "examples/plugin", folder / "source")
    made = folder / "venv/bin/python"
    pip = [str(Path(sys.base_prefix) / "bin/python3"), "-m", "pip", "--python", str(made), "install", "-q"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, *offline, str(folder / "source")], check=True)
    return made


def test_a_node_is_drained_by_a_plugin_that_is_installed(scene: Scene, tmp_path: Path, python: Path) -> None:
    node = scene.node()
    scene.workload("shop", node)
    annotations = {f"{KEYS}/update": to_text(scene.now + timedelta(minutes=10)), f"{KEYS}/backup": "running"}
    scene.api.patch("nodes", node, {"metadata": {"annotations": annotations}})
    settings = tmp_path / "maintenance.yaml"

    def sweep(text: str) -> str:
        settings.write_text(text, encoding="utf-8")
        kubeconfig = str(scene.controlplane.kubeconfig)
        command = [str(python), "-m", "jobs", "sweep", "--config", str(settings), "--kubeconfig", kubeconfig]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    sweep("mode: Enforce\nsources: {firmware: {enabled: false}}\n")
    assert scene.is_untouched(node)

    assert "a backup runs (firmware.example.com/backup)" in sweep("mode: Enforce")
    assert not scene.cordoned(node)

    scene.api.patch("nodes", node, {"metadata": {"annotations": {f"{KEYS}/backup": None}}})
    sweep("mode: Enforce")
    assert scene.cordoned(node)
    assert scene.pods_on(node) == []
