"""selfServiceFailed: Azure still plans it, an hour after there was nothing left to try."""

from __future__ import annotations

import pytest

from reconciler.model.plan import Verdict
from reconciler.model.record import SelfService
from reconciler.profiles.case import CaseView
from tests.support.builders import NOW, ask, event, judged, minutes, situation
from tests.support.planning import TAKEN, azure_node, drained, judged_plan


@pytest.mark.parametrize(
    ("ago", "attempt", "boot", "case", "failed"),
    [
        pytest.param(60, 3, "boot-1", None, True, id="asked three times"),
        pytest.param(59, 3, "boot-1", None, False, id="still waited for"),
        pytest.param(60, 2, "boot-1", None, False, id="one try is left"),
        pytest.param(60, 1, "boot-2", None, True, id="booted, and Azure still plans it"),
        pytest.param(60, 3, "boot-1", CaseView(), False, id="the plan has gone"),
        pytest.param(
            60, 3, "boot-1", CaseView((judged_plan(), judged(event()))), False, id="there is a current event"
        ),
        pytest.param(60, 3, "boot-1", CaseView((), ("arm is silent",)), False, id="nobody can say"),
    ],
)
def test_failed_is_when_nothing_is_left_to_try(
    ago: int, attempt: int, boot: str, case: CaseView | None, failed: bool
) -> None:
    held = drained(SelfService(NOW - minutes(ago), attempt, "boot-1"))
    reported = situation(azure_node(boot), judged_plan(), chosen=TAKEN, held=held, case=case)
    answer = ask("selfServiceFailed", reported)

    assert (answer.verdict is Verdict.PASSED) is failed
    assert answer.holds is False


def test_what_was_never_asked_for_has_not_failed() -> None:
    reported = situation(azure_node(), judged_plan(), chosen=TAKEN, held=drained())

    assert ask("selfServiceFailed", reported).verdict is Verdict.FAILED
