"""nodeCount: how many nodes the cluster has."""

from __future__ import annotations

import pytest

from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, given, member


@pytest.mark.parametrize(
    ("count", "verdict"), [(2, Verdict.PASSED), (3, Verdict.FAILED), ("2", Verdict.PASSED)]
)
def test_the_cluster_has_enough_nodes(count: object, verdict: Verdict) -> None:
    assert ask("nodeCount", given(member("b")), count=count).verdict is verdict
