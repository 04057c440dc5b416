"""drainDue: the node was not drained for an event that requires it."""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind
from reconciler.model.plan import Verdict
from reconciler.model.record import CaseRecord, KnownEvent
from reconciler.model.structs import replace
from tests.support import builders
from tests.support.builders import ask, event, judged, known, situation

REDEPLOY = judged(event(Kind.REDEPLOY, ids=("B2",)))
WAITING = replace(known(Kind.REDEPLOY, ids=("B2",)), waits=True)


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        pytest.param((known(Kind.REDEPLOY, ids=("B2",)),), Verdict.FAILED, id="drained for it"),
        pytest.param((known(ids=("A1",)),), Verdict.PASSED, id="drained for another"),
        pytest.param((known(ids=("A1",)), WAITING), Verdict.PASSED, id="it waits"),
        pytest.param((known(ids=("B2",)), WAITING), Verdict.PASSED, id="its kind has become worse"),
    ],
)
def test_a_node_is_drained_for_each_event(events: tuple[KnownEvent, ...], verdict: Verdict) -> None:
    answer = ask("drainDue", situation(None, REDEPLOY, held=builders.record(events=events)))

    assert (answer.verdict, answer.holds) == (verdict, False)


def test_without_a_drain_it_is_due() -> None:
    adopted = replace(builders.record(events=(known(Kind.REDEPLOY, ids=("B2",)),)), drain=None)

    assert ask("drainDue", situation(None, REDEPLOY, held=adopted)).verdict is Verdict.PASSED
    assert ask("drainDue", situation(None, held=CaseRecord())).verdict is Verdict.FAILED
