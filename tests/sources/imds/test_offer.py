"""Which events of one node Azure is asked to start: those that every VM allows, each once."""

from __future__ import annotations

import pytest

from reconciler.model.plan import Verdict
from reconciler.model.record import CaseRecord, DrainRecord
from reconciler.model.values import replace
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed
from reconciler.sources.imds.feature import NAME, OFFER, Acknowledgement
from tests.support.builders import NOW, record, situation
from tests.support.cases import acknowledged

MAY = Acknowledgement("A1")
MAY_NOT = Acknowledgement("B2", "node b is not drained for it yet")
OTHER = Acknowledgement("C3", "VM x is not a node of this cluster")
ASKED = replace(record(), asked=acknowledged("A1"))


def shared(*given: Acknowledgement, held: CaseRecord | None = None) -> Situation:
    """A drained node whose VM shares these events with other VMs."""
    return replace(situation(held=held or record()), of_features={NAME: given})


DUE = {
    "due": (shared(MAY), passed("every VM of event A1 is drained")),
    "one that may not keeps none that may": (shared(MAY_NOT, MAY), passed("every VM of event A1 is drained")),
    "refused": (shared(MAY_NOT), failed("event B2 is not acknowledged: node b is not drained for it yet")),
    "each refusal": (
        shared(MAY, MAY_NOT, OTHER, held=ASKED),
        failed("it yet; event C3 is not acknowledged: VM x is not a node of this cluster"),
    ),
    "acknowledged already": (shared(MAY, held=ASKED), failed("there is no event", holds=False)),
    "still being drained": (
        shared(MAY, held=record(drain=DrainRecord(NOW))),
        failed("the node is not drained yet", holds=False),
    ),
    "never drained": (
        shared(MAY, held=replace(record(), drain=None)),
        failed("the node is not drained yet", holds=False),
    ),
}


@pytest.mark.parametrize(("seen", "expected"), [pytest.param(*row, id=case) for case, row in DUE.items()])
def test_answers(seen: Situation, expected: CheckResult) -> None:
    answer = OFFER.due(seen)

    assert expected.reason in answer.reason
    assert answer.verdict is expected.verdict
    assert answer.holds == expected.holds or answer.verdict is Verdict.PASSED


def test_what_may_start_and_was_not_asked_for_is_asked_for() -> None:
    request = OFFER.request(shared(MAY, Acknowledgement("B2"), OTHER, held=ASKED))

    assert request is not None
    assert request.events == ("B2",)
    assert request.notice.message == "every VM of event B2 is drained, so Azure may start it now"
