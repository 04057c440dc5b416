"""leftToUs, by the other tool that works on the node."""

from __future__ import annotations

import pytest

from reconciler.model.node import AUTOSCALER_TAINT, REMEDIATOR_TAINT
from reconciler.model.plan import Verdict
from tests.support import builders
from tests.support.builders import ask, node, situation


@pytest.mark.parametrize(
    ("taints", "remediator", "verdict"),
    [
        pytest.param((), "Leave", Verdict.PASSED, id="nobody else"),
        pytest.param((AUTOSCALER_TAINT,), "Share", Verdict.FAILED, id="the autoscaler deletes it"),
        pytest.param((REMEDIATOR_TAINT,), "Share", Verdict.PASSED, id="shared with the remediator"),
        pytest.param((REMEDIATOR_TAINT,), "Leave", Verdict.FAILED, id="left to the remediator"),
    ],
)
def test_a_node_in_other_hands_is_held(taints: tuple[str, ...], remediator: str, verdict: Verdict) -> None:
    chosen = builders.settings(f"coexist: {{aksRemediator: {remediator}}}")

    assert ask("leftToUs", situation(node(taints=taints), chosen=chosen)).verdict is verdict


def test_both_are_named_where_both_have_it() -> None:
    on = node(taints=(AUTOSCALER_TAINT, REMEDIATOR_TAINT))
    answer = ask("leftToUs", situation(on, chosen=builders.settings("coexist: {aksRemediator: Leave}")))

    assert "cluster autoscaler" in answer.reason
    assert "remediator" in answer.reason
