"""acknowledge: recorded and reported once; what was acknowledged before stays."""

from __future__ import annotations

from reconciler.model.plan import Notice
from reconciler.model.structs import replace
from reconciler.profiles.situation import Acknowledgement, Effects
from reconciler.profiles.triggers.platform import acknowledge
from tests.support.builders import record, situation


def test_what_may_start_is_recorded_and_reported() -> None:
    held = replace(record(), acknowledged=("A1",))
    given = (Acknowledgement("A1"), Acknowledgement("B2"), Acknowledgement("C3", "a VM is no node"))
    effects = acknowledge(replace(situation(held=held), acknowledgements=given), Effects(held))

    assert effects.record == replace(held, acknowledged=("A1", "B2"))
    assert effects.notices == (
        Notice("MaintenanceAcknowledged", "every VM of event B2 is drained, so Azure may start it now"),
    )
    assert (effects.unschedulable, effects.labels) == (None, {})
