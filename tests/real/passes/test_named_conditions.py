"""Conditions of the settings on real nodes: what `check-config` says of them, and which one drains a node."""

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
    assert ", context controlplane\n  3 of 3 nodes are managed.\n" in said.out
    assert "  Condition KernelReady: False on 2, True on 1, absent on 0 of 3 nodes" in said.out
    assert "conditions.KernelReady: is False on 2 of 3 nodes now, so no drain starts for it" in said.err
    assert "windows[0].nodeSelector: selects none of the 3 nodes" in said.err


def test_a_sweep_drains_no_node_for_a_condition_that_is_true_on_most_of_them(
    scene: Scene, tmp_path: Path
) -> None:
    names = [scene.node(number) for number in range(4)]
    for number, name in enumerate(names):
        scene.condition(name, "KernelReady", "True" if number < 3 else "False")
    file = tmp_path / "policy.yaml"
    kubeconfig = str(scene.controlplane.kubeconfig)

    def cordoned(text: str) -> list[str]:
        file.write_text(f"mode: Enforce\nconditions: {{KernelReady: {text}}}\n", encoding="utf-8")
        main(["sweep", "--config", str(file), "--kubeconfig", kubeconfig])
        nodes = [scene.api.get("nodes", name) for name in names]
        return [node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")]

    assert cordoned("{}") == []
    assert cordoned('{status: "False"}') == names[3:]
