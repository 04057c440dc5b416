"""machineStays: a node whose machine is being deleted is not uncordoned."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.machine import Machine
from reconciler.model.plan import Verdict
from reconciler.model.record import Replacement
from reconciler.model.structs import replace
from reconciler.profiles.checks.machines import PAUSE
from tests.support.builders import NOW, ask, minutes
from tests.support.replacing import POOL, REF, machine, to_be_replaced

ASKED = Replacement(NOW - minutes(5), removals=1)
JUST_ASKED = Replacement(NOW - minutes(1), removals=1)


@pytest.mark.parametrize(
    ("owner", "asked", "verdict", "until"),
    [
        pytest.param(None, None, Verdict.PASSED, None, id="nobody's"),
        pytest.param(machine(), None, Verdict.PASSED, None, id="not asked"),
        pytest.param(machine(), Replacement(NOW, 4), Verdict.PASSED, None, id="only raised"),
        pytest.param(machine(deleting=True), None, Verdict.FAILED, None, id="deleted by others"),
        pytest.param(machine(deleting=True), ASKED, Verdict.FAILED, None, id="deleted"),
        pytest.param(machine(), JUST_ASKED, Verdict.FAILED, NOW + minutes(1), id="just asked"),
        pytest.param(
            machine(),
            Replacement(NOW - PAUSE, removals=1),
            Verdict.PASSED,
            None,
            id="after the pause",
        ),
        pytest.param(machine(replace(POOL, busy="busy")), ASKED, Verdict.FAILED, None, id="busy"),
        pytest.param(machine(), ASKED, Verdict.PASSED, None, id="but did not happen"),
        pytest.param(None, ASKED, Verdict.UNKNOWN, None, id="nobody to ask"),
        pytest.param(Machine(REF, problem="403"), ASKED, Verdict.UNKNOWN, None, id="unreadable"),
    ],
)
def test_a_machine_stays_unless_it_goes(
    owner: Machine | None, asked: Replacement | None, verdict: Verdict, until: datetime | None
) -> None:
    answer = ask("machineStays", to_be_replaced(owner, asked=asked))

    assert (answer.verdict, answer.until) == (verdict, until)
