"""adopt: take over mechanic's cordon."""

from __future__ import annotations

from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.record import CaseRecord, Cordon
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.nodes import adopt
from tests.support.builders import event, judged, situation


def test_the_cordon_becomes_ours_and_mechanics_label_goes() -> None:
    effects = adopt(situation(), Effects(CaseRecord()))

    assert effects.record.cordon is Cordon.ADOPTED_MECHANIC
    assert effects.record.drain is None
    assert effects.labels == {MECHANIC_LABEL: None}
    assert effects.unschedulable is None
    assert [notice.reason for notice in effects.notices] == ["MaintenanceAdopted"]


def test_it_starts_no_drain_because_every_start_asks_its_own_checks() -> None:
    assert adopt(situation(None, judged(event())), Effects(CaseRecord())).record.drain is None
