"""condition: the status of one condition of the node."""

from __future__ import annotations

import pytest

from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, given
from tests.support.builders import condition, node


@pytest.mark.parametrize(
    ("kind", "status", "verdict"),
    [
        ("KernelDeadlock", "True", Verdict.PASSED),
        ("KernelDeadlock", "False", Verdict.FAILED),
        ("DiskPressure", "False", Verdict.FAILED),
    ],
)
def test_the_condition_has_the_status(kind: str, status: str, verdict: Verdict) -> None:
    scene = given(node=node("a", conditions=(condition("KernelDeadlock"),)))

    assert ask("condition", scene, type=kind, status=status).verdict is verdict
