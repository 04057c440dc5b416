"""budgetLeft, by what the budget has left."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.model.plan import Verdict
from tests.support import builders
from tests.support.builders import NOW, ask, event, judged, minutes, node, situation

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


LOST = node("b", ready=False, ready_since=NOW - minutes(10))


@pytest.mark.parametrize(
    ("holder", "date", "until"),
    [
        pytest.param(FULL[1], None, None, id="nobody knows when"),
        pytest.param(LOST, None, NOW + minutes(20), id="the lost node counts as gone for long"),
        pytest.param(LOST, NOW + minutes(25), NOW + minutes(10), id="the node itself is lost before"),
        pytest.param(LOST, NOW + minutes(60), NOW + minutes(20), id="the node itself is lost after"),
    ],
)
def test_a_node_waits_for_a_lost_one_to_give_its_place_back_or_to_be_lost_itself(
    holder: Node, date: datetime | None, until: datetime | None
) -> None:
    kind = Kind.REBOOT if date is None else Kind.PREEMPT
    chosen = builders.settings("budget: {maxUnavailable: 1}")
    asking = judged(event(kind, not_before=date), chosen)
    answer = ask("budgetLeft", situation(node(), asking, chosen=chosen, fleet=(node(), holder)))

    assert (answer.verdict, answer.until) == (Verdict.FAILED, until)
