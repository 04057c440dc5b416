"""othersFirst, by whether it is our own node, and by the other nodes that wait."""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind, MaintenanceEvent, Status
from reconciler.model.plan import Verdict
from reconciler.model.structs import replace
from tests.support.builders import NOW, ask, event, judged, minutes, situation


@pytest.mark.parametrize(
    ("own", "waiting", "verdict"),
    [(False, 3, Verdict.PASSED), (True, 0, Verdict.PASSED), (True, 1, Verdict.FAILED)],
)
def test_only_our_own_node_waits_for_the_others(own: bool, waiting: int, verdict: Verdict) -> None:
    assert ask("othersFirst", replace(situation(), own_node=own, waiting_nodes=waiting)).verdict is verdict


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        (event(not_before=NOW + minutes(60)), Verdict.FAILED),
        (event(not_before=NOW + minutes(5)), Verdict.PASSED),
        (event(), Verdict.FAILED),
        (event(status=Status.STARTED), Verdict.PASSED),
        (event(Kind.PREEMPT), Verdict.PASSED),
        (event(Kind.PREEMPT, not_before=NOW + minutes(60)), Verdict.FAILED),
        (event(Kind.PREEMPT, not_before=NOW + minutes(8)), Verdict.PASSED),
        (event(date_unreadable=True), Verdict.PASSED),
    ],
)
def test_our_own_node_waits_until_its_deadline_only(told: MaintenanceEvent, verdict: Verdict) -> None:
    seen = replace(situation(None, judged(told)), own_node=True, waiting_nodes=1)

    assert ask("othersFirst", seen).verdict is verdict


def test_the_deadline_is_when_our_own_node_waits_no_more() -> None:
    told = judged(event(not_before=NOW + minutes(60)))
    seen = replace(situation(None, told), own_node=True, waiting_nodes=1)

    assert ask("othersFirst", seen).until == told.deadline
    stuck = NOW + minutes(2)
    assert ask("othersFirst", replace(seen, others_stuck_at=stuck)).until == stuck
