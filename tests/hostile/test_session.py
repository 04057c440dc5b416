"""A short hostile session with a fixed seed; `nox -s hostile` plays long ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.session import Session
from tests.support.controlplane.server import ControlPlane


@pytest.mark.slow
def test_healthy_nodes_are_treated_in_time_beside_hostile_ones(cluster: ControlPlane, tmp_path: Path) -> None:
    result = Session(cluster, tmp_path, seed=7, log=tmp_path / "tried.jsonl").run(seconds=15)

    assert result.wrong == []
    assert result.cases >= 3
    assert result.tried.total() > 10
    assert (tmp_path / "tried.jsonl").read_text(encoding="utf-8").count("\n") >= result.tried.total()
