"""replacementReady: there, not wanted, or not to be waited for."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.model.plan import Verdict
from reconciler.model.record import Replacement, State
from reconciler.model.structs import replace
from reconciler.profiles.situation import Situation
from tests.support.builders import NOW, ask, minutes
from tests.support.replacing import POOL, REPLACES, SURGES, machine, to_be_replaced

BEFORE = State.REQUIRED
ASKED = Replacement(NOW - minutes(3), 4)


def surging(*, ready: int | None = 3, not_before: datetime | None = None, before_us: str = "") -> Situation:
    """A node whose pool was asked for a fourth machine."""
    return to_be_replaced(
        machine(replace(POOL, wanted=4, ready=ready)),
        chosen=SURGES,
        state=BEFORE,
        asked=ASKED,
        not_before=not_before,
        before_us=before_us,
    )


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        (to_be_replaced(machine(), chosen=REPLACES, state=BEFORE), ""),
        (surging(ready=4), "its replacement in MachineSet np is Ready"),
        (surging(not_before=NOW + minutes(15)), "the deadline has come"),
        (to_be_replaced(machine(None), chosen=SURGES, state=BEFORE), "no machine provider can"),
    ],
)
def test_the_drain_need_not_wait(situation: Situation, words: str) -> None:
    answer = ask("replacementReady", situation)

    assert answer.verdict is Verdict.PASSED
    assert words in answer.reason


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        (surging(), "must have 4 machines Ready before the drain, and has 3"),
        (surging(ready=None), "has an unknown number"),
        (to_be_replaced(machine(), chosen=SURGES, state=BEFORE), "one more machine before the drain"),
        (to_be_replaced(machine(), chosen=SURGES, state=BEFORE, before_us="b"), "node b of MachineSet np"),
        (
            to_be_replaced(machine(replace(POOL, busy="np is busy")), chosen=SURGES, state=BEFORE),
            "np is busy",
        ),
    ],
)
def test_the_drain_waits_and_says_for_what(situation: Situation, words: str) -> None:
    answer = ask("replacementReady", situation)

    assert (answer.verdict, answer.holds) == (Verdict.FAILED, True)
    assert words in answer.reason


def test_it_waits_until_the_deadline() -> None:
    answer = ask("replacementReady", surging(not_before=NOW + timedelta(days=1)))

    assert answer.until == NOW + timedelta(days=1) - minutes(15)
