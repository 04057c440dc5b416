"""An API server whose answers come late: a cordon takes a few round trips."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.proxy import Proxy

pytestmark = pytest.mark.slow

LATE = 2.0
"""Seconds."""


def test_with_late_answers_a_node_is_cordoned_in_a_few_round_trips(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    node = scene.node()
    with Proxy(programs.kubeconfig) as proxy:
        proxy.late = LATE
        serving = programs.start(
            "serve", "--every", "1h", kubeconfig=proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig")
        )
        serving.wait_for("leading")
        scene.condition_tells(node)
        wait_for("the cordon", lambda: scene.cordoned(node), seconds=14)

        assert len(serving.said("leading")) == 1
        assert "is lost" not in serving.everything()
        assert serving.said("pass failed") == []
