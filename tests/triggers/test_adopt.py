"""adopt: take over mechanic's cordon."""

from __future__ import annotations

from reconciler.engine.situation import Effects
from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.record import CaseRecord, Cordon, DrainRecord
from reconciler.triggers.adopt import adopt
from tests.support.builders import NOW, event, judged, situation


def test_the_cordon_becomes_ours_and_mechanics_label_goes() -> None:
    effects = adopt(situation(), Effects(CaseRecord()))

    assert effects.record.cordon is Cordon.ADOPTED_MECHANIC
    assert effects.record.drain is None
    assert effects.labels == {MECHANIC_LABEL: None}
    assert effects.unschedulable is None
    assert [notice.reason for notice in effects.notices] == ["MaintenanceAdopted"]


def test_its_drain_goes_on_while_an_event_asks_for_one() -> None:
    effects = adopt(situation(None, judged(event())), Effects(CaseRecord()))

    assert effects.record.drain == DrainRecord(NOW)
