"""budgetLeft, by what the budget has left."""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind
from reconciler.model.plan import Verdict
from tests.support import builders
from tests.support.builders import ask, event, judged, node, situation

FULL = (node(), node("b", unschedulable=True))


@pytest.mark.parametrize(
    ("limit", "kind", "verdict", "reason"),
    [
        pytest.param(2, Kind.REBOOT, Verdict.PASSED, "", id="a place is left"),
        pytest.param(1, Kind.REBOOT, Verdict.FAILED, "held by b (cordoned by others)", id="none is left"),
        pytest.param(1, Kind.PREEMPT, Verdict.PASSED, "exempt from the budget", id="lost anyway"),
    ],
)
def test_a_node_needs_a_place_unless_it_is_lost_anyway(
    limit: int, kind: Kind, verdict: Verdict, reason: str
) -> None:
    chosen = builders.settings(f"budget: {{maxUnavailable: {limit}}}")
    answer = ask("budgetLeft", situation(node(), judged(event(kind)), chosen=chosen, fleet=FULL))

    assert answer.verdict is verdict
    assert reason in answer.reason
