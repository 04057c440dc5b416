"""`check-config` with a cluster: on how many nodes selectors and conditions are."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import main
from tests.real.passes.scene import Scene

pytestmark = pytest.mark.slow


def test_check_config_says_on_how_many_nodes_a_condition_is(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        scene.condition(scene.node(number), "KernelReady", "False" if number else "True")
    file = tmp_path / "policy.yaml"
    file.write_text(
        'conditions: {KernelReady: {status: "False"}}\n'
        "windows: [{days: [sat], nodeSelector: {pool: none}}]\n",
        encoding="utf-8",
    )
    kubeconfig = str(scene.controlplane.kubeconfig)

    assert main(["check-config", str(file), "--strict", "--kubeconfig", kubeconfig]) == 1

    said = capsys.readouterr()
    assert "In the cluster\n  3 of 3 nodes are managed.\n" in said.out
    assert "  Condition KernelReady: False on 2, True on 1, absent on 0 of 3 nodes" in said.out
    assert "conditions.KernelReady: is False on 2 of 3 nodes now, so no drain starts for it" in said.err
    assert "windows[0].nodeSelector: selects none of the 3 nodes" in said.err
