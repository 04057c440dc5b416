"""A pass loads what it needs: start-up is most of what a sweep of a small cluster costs."""

import subprocess
import sys
from pathlib import Path

from tests.real.passes.scene import Scene

ROOT = Path(__file__).parents[3]
SWEEP = """
import sys
from jobs.cli import main
code = main(["sweep", "--kubeconfig", sys.argv[1], "--config", sys.argv[2]])
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""
# Clients of clouds and of others, what draws progress bars, and the parts of features that are off.
OTHERS = {
    *("azure", "boto3", "botocore", "cryptography", "jinja2", "kubernetes", "opentelemetry", "pyVmomi"),
    *("asyncio", "configparser", "slack_sdk", "tenacity"),
}
OFF = {
    *("reconciler.features.workflows.check_types", "reconciler.features.workflows.trigger_types"),
    *("reconciler.features.workflows.notify_types", "reconciler.kubernetes.cloud_provider", "rich.console"),
}
PARTS = (
    *("", ".columns", ".feature", ".holds", ".metrics", ".process", ".reports", ".section", ".services"),
    ".settings",
)
OF_WORKFLOWS = {f"reconciler.features.workflows{part}" for part in PARTS}


def test_a_sweep_with_default_settings_loads_nothing_of_what_is_off(scene: Scene, tmp_path: Path) -> None:
    scene.node()
    settings = tmp_path / "maintenance.yaml"
    settings.write_text("mode: Enforce\n", encoding="utf-8")
    command = [sys.executable, "-c", SWEEP, str(scene.controlplane.kubeconfig), str(settings)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    loaded = set(done.stderr.splitlines()[-1].split())

    assert {name.partition(".")[0] for name in loaded} & OTHERS == set()
    assert loaded & OFF == set()
    assert {name for name in loaded if name.startswith("reconciler.features.workflows")} == OF_WORKFLOWS
