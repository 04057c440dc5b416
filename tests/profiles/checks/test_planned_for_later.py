"""plannedForLater: nothing but a plan is left, and it asks for nothing now."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.model.record import SelfService
from reconciler.model.structs import replace
from reconciler.profiles.case import CaseView
from tests.support.builders import NOW, ask, event, judged, minutes, situation
from tests.support.planning import OFFER, TAKEN, azure_node, drained, judged_plan

LATER = judged_plan(plan=replace(OFFER, offered=False))


@pytest.mark.parametrize(
    ("present", "asked", "passed"),
    [
        pytest.param((LATER,), None, True, id="an offer that ended"),
        pytest.param((judged_plan(),), None, False, id="an offer that stands"),
        pytest.param((LATER, judged(event())), None, False, id="another event beside it"),
        pytest.param((), None, False, id="nothing at all: that is another way's affair"),
        pytest.param((LATER,), SelfService(NOW, 1, "boot-1"), False, id="Azure is at it"),
    ],
)
def test_only_a_plan_that_asks_for_nothing_gives_the_node_back(
    present: tuple[JudgedEvent, ...], asked: SelfService | None, passed: bool
) -> None:
    held = replace(drained(asked), quiet_since=NOW - minutes(2))
    reported = situation(azure_node(), *present, chosen=TAKEN, held=held, case=CaseView(present))

    answer = ask("plannedForLater", reported)

    assert (answer.verdict is Verdict.PASSED) is passed
    assert answer.reason == (LATER.because if passed else "no plan for later")
    # It holds nothing, with any answer.
    assert not answer.holds


def test_the_node_settles_first() -> None:
    held = replace(drained(), quiet_since=NOW - minutes(1))
    reported = situation(azure_node(), LATER, chosen=TAKEN, held=held, case=CaseView((LATER,)))

    answer = ask("plannedForLater", reported)

    assert (answer.verdict, answer.until, answer.holds) == (Verdict.FAILED, NOW + minutes(1), True)


def test_while_it_is_unknown_the_node_stays() -> None:
    case = CaseView((LATER,), ("imds reported Reboot and can't be read now",))

    assert ask("plannedForLater", situation(azure_node(), LATER, case=case)).verdict is Verdict.FAILED


def test_a_node_drained_for_one_event_does_not_stay_empty_for_another_next_week() -> None:
    far = judged(event(not_before=NOW + timedelta(days=7)))
    held = replace(drained(), quiet_since=NOW - minutes(2))
    told = situation(azure_node(), far, chosen=TAKEN, held=held, case=CaseView((far,), later=(far,)))

    answer = ask("plannedForLater", told)

    assert answer.verdict is Verdict.PASSED
    assert "starts from 2026-11-28T10:45:00Z on" in answer.reason
