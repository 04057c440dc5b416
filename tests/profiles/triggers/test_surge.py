"""surge: written down first, then asked for."""

from __future__ import annotations

from reconciler.model.machine import ScaleUp
from reconciler.model.record import Replacement, State
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.platform import surge
from tests.support import builders
from tests.support.builders import NOW
from tests.support.replacing import SURGES, machine, to_be_replaced


def test_the_number_is_in_the_record_and_the_action_in_the_plan() -> None:
    situation = to_be_replaced(machine(), chosen=SURGES, state=State.REQUIRED)
    effects = surge(situation, Effects(situation.record))

    assert effects.record.replacement == Replacement(NOW, 4)
    assert effects.machine == ScaleUp("a", machine(), 4)
    assert effects.unschedulable is None
    assert [notice.reason for notice in effects.notices] == ["MaintenanceSurge"]


def test_where_no_number_is_known_nothing_is_asked() -> None:
    before = Effects(builders.record())

    assert surge(to_be_replaced(machine(None)), before) == before
