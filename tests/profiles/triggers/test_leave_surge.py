"""leaveSurge: report a surplus machine once."""

from __future__ import annotations

import pytest

from reconciler.model.machine import Machine
from reconciler.model.record import Replacement
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.platform import leave_surge
from tests.support.builders import NOW
from tests.support.replacing import machine, to_be_replaced


@pytest.mark.parametrize(
    ("owner", "asked", "reported"),
    [
        pytest.param(machine(), None, "", id="nothing was asked"),
        pytest.param(machine(), Replacement(NOW, 4), "MachineSet np was scaled up to 4", id="raised"),
        pytest.param(None, Replacement(NOW, 4), "its pool was scaled up to 4", id="by a pool unknown now"),
        pytest.param(machine(), Replacement(NOW, 4, 1), "", id="and its own deleted"),
    ],
)
def test_what_is_left_is_reported(owner: Machine | None, asked: Replacement | None, reported: str) -> None:
    situation = to_be_replaced(owner, asked=asked)
    effects = leave_surge(situation, Effects(situation.record))

    assert effects.record.replacement is None
    assert [reported in notice.message for notice in effects.notices] == ([True] if reported else [])
