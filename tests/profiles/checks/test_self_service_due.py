"""selfServiceDue: only on an empty node, only what is offered now, and never twice in a hurry."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.event import PlatformPlan
from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.model.record import DrainRecord, SelfService
from reconciler.model.structs import replace
from tests.support.builders import NOW, ask, minutes, situation
from tests.support.planning import ASKED_FOR, OFFER, TAKEN, azure_node, drained, judged_plan

ASKED = SelfService(NOW - minutes(10), 1, "boot-1")


@pytest.mark.parametrize(
    ("asked", "boot", "due", "reason", "until"),
    [
        pytest.param(None, "boot-1", True, "the node is drained", None, id="not asked yet"),
        pytest.param(ASKED, "boot-1", True, "", None, id="asked in vain ten minutes ago"),
        pytest.param(
            replace(ASKED, asked=NOW - minutes(9)),
            "boot-1",
            False,
            "Azure was asked at",
            NOW + minutes(1),
            id="asked just now",
        ),
        pytest.param(
            replace(ASKED, attempt=2), "boot-1", False, "Azure was asked at", NOW + minutes(10), id="slower"
        ),
        pytest.param(
            replace(ASKED, attempt=3, asked=NOW - minutes(600)),
            "boot-1",
            False,
            "asked 3 times",
            None,
            id="enough",
        ),
        pytest.param(ASKED, "boot-2", False, "has booted since", None, id="booted: it is being done"),
        pytest.param(ASKED, "", True, "", None, id="a boot that is not reported proves nothing"),
    ],
)
def test_azure_is_asked_when_it_is_due_and_not_before(
    asked: SelfService | None, boot: str, due: bool, reason: str, until: datetime | None
) -> None:
    answer = ask(
        "selfServiceDue",
        situation(azure_node(boot), judged_plan(), chosen=TAKEN, held=drained(asked)),
    )

    assert (answer.verdict is Verdict.PASSED, answer.until, answer.holds) == (due, until, False)
    assert reason in answer.reason


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        pytest.param(
            replace(OFFER, offered=False), "the settings do not use the offer", id="not allowed now"
        ),
        pytest.param(
            replace(OFFER, offer_end=NOW),
            "the settings do not use the offer",
            id="the self-service window is over",
        ),
        pytest.param(None, "the settings do not use the offer", id="at hand, and no plan any more"),
    ],
)
def test_what_is_not_offered_is_not_started(plan: PlatformPlan | None, reason: str) -> None:
    event = judged_plan(plan=plan)
    answer = ask("selfServiceDue", situation(azure_node(), event, chosen=TAKEN, held=drained(), now=NOW))

    assert answer.verdict is Verdict.FAILED
    assert reason in answer.reason


def another(plan: PlatformPlan | None = None) -> JudgedEvent:
    return replace(judged_plan(plan=plan), asks=True, starts=True)


def test_beside_an_event_that_is_at_hand_nothing_is_started() -> None:
    both = situation(azure_node(), judged_plan(), another(), chosen=TAKEN, held=drained())

    assert "there is another event" in ask("selfServiceDue", both).reason


def test_a_node_that_is_not_empty_or_not_azures_is_left() -> None:
    full = replace(drained(), drain=DrainRecord(NOW))
    held = situation(azure_node(), judged_plan(), chosen=TAKEN, held=full)
    foreign = situation(
        replace(azure_node(), provider_id="kind://a"), judged_plan(), chosen=TAKEN, held=drained()
    )

    assert "not drained" in ask("selfServiceDue", held).reason
    assert "not Azure's" in ask("selfServiceDue", foreign).reason


def test_where_another_node_has_the_same_vm_nothing_is_started_and_the_hold_names_it() -> None:
    one = situation(azure_node(), judged_plan(), chosen=TAKEN, held=drained())
    answer = ask("selfServiceDue", replace(one, twin="b"))

    assert (answer.verdict, answer.holds) == (Verdict.FAILED, True)
    assert "node b has the same providerID" in answer.reason


def test_by_default_nothing_is_started() -> None:
    event = judged_plan(ASKED_FOR, not_before=NOW + minutes(60))
    answer = ask("selfServiceDue", situation(azure_node(), event, chosen=ASKED_FOR, held=drained()))

    assert event.asks
    assert event.event.plan is not None
    assert event.event.plan.open_at(NOW)
    assert answer.verdict is Verdict.FAILED
