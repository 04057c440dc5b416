"""leftByRemediator, by the remediator's taint."""

from __future__ import annotations

import pytest

from reconciler.model.node import REMEDIATOR_TAINT
from reconciler.model.plan import Verdict
from tests.support.builders import IN_UPGRADE, ask, node, situation


@pytest.mark.parametrize(("taints", "verdict"), [((), Verdict.PASSED), ((REMEDIATOR_TAINT,), Verdict.FAILED)])
def test_a_node_that_aks_keeps_closed_is_not_opened(taints: tuple[str, ...], verdict: Verdict) -> None:
    answer = ask("leftByRemediator", situation(node(taints=taints)))

    assert answer.verdict is verdict
    assert (REMEDIATOR_TAINT in answer.reason) is bool(taints)


def test_a_node_that_aks_upgrades_is_not_opened() -> None:
    answer = ask("leftByRemediator", situation(node(pool="np", annotations=IN_UPGRADE)))

    assert (answer.verdict, answer.reason) == (Verdict.FAILED, "AKS upgrades pool np")
