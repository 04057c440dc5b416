"""acknowledgeDue: once the node is drained, and nothing on any of the event's VMs speaks against it."""

from __future__ import annotations

import pytest

from reconciler.model.plan import Verdict
from reconciler.model.record import CaseRecord, DrainRecord
from reconciler.model.structs import replace
from reconciler.profiles.situation import Acknowledgement
from tests.support.builders import NOW, ask, record, situation

MAY = Acknowledgement("A1")
MAY_NOT = Acknowledgement("B2", "node b is not drained for it yet")
OTHER = Acknowledgement("C3", "VM x is not a node of this cluster")
DRAINED = record()
TOLD = replace(DRAINED, acknowledged=("A1",))


@pytest.mark.parametrize(
    ("held", "given", "verdict", "reason", "holds"),
    [
        pytest.param(DRAINED, (MAY,), Verdict.PASSED, "every VM of event A1 is drained", False, id="due"),
        pytest.param(
            DRAINED,
            (MAY, Acknowledgement("D4")),
            Verdict.PASSED,
            "every VM of event A1, D4 is drained",
            False,
            id="two are due",
        ),
        pytest.param(
            DRAINED,
            (MAY_NOT, MAY),
            Verdict.PASSED,
            "every VM of event A1 is drained",
            False,
            id="one that may not start keeps none that may",
        ),
        pytest.param(
            DRAINED,
            (MAY_NOT,),
            Verdict.FAILED,
            "event B2 is not acknowledged: node b is not drained for it yet",
            True,
            id="refused, which is reported",
        ),
        pytest.param(
            TOLD,
            (MAY, MAY_NOT, OTHER),
            Verdict.FAILED,
            "event B2 is not acknowledged: node b is not drained for it yet; "
            "event C3 is not acknowledged: VM x is not a node of this cluster",
            True,
            id="each refusal is reported",
        ),
        pytest.param(
            TOLD, (MAY,), Verdict.FAILED, "there is no event to acknowledge", False, id="acknowledged already"
        ),
        pytest.param(
            DRAINED, (), Verdict.FAILED, "there is no event to acknowledge", False, id="none wanted"
        ),
        pytest.param(
            record(drain=DrainRecord(NOW)),
            (MAY,),
            Verdict.FAILED,
            "the node is not drained yet",
            False,
            id="still being drained",
        ),
        pytest.param(
            replace(DRAINED, drain=None),
            (MAY,),
            Verdict.FAILED,
            "the node is not drained yet",
            False,
            id="never drained",
        ),
    ],
)
def test_an_event_may_start_once_nothing_prevents_it(
    held: CaseRecord, given: tuple[Acknowledgement, ...], verdict: Verdict, reason: str, *, holds: bool
) -> None:
    answer = ask("acknowledgeDue", replace(situation(held=held), acknowledgements=given))

    assert (answer.verdict, answer.reason, answer.holds) == (verdict, reason, holds)
