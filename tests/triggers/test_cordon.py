"""cordon: close the node, and remember whose cordon it is."""

from __future__ import annotations

from reconciler.engine.situation import Effects
from reconciler.model.record import CaseRecord, Cordon
from reconciler.triggers.cordon import cordon
from tests.support.builders import event, judged, node, situation


def test_an_open_node_is_closed_and_the_cordon_is_ours() -> None:
    effects = cordon(situation(node(), judged(event())), Effects(CaseRecord()))

    assert effects.unschedulable is True
    assert effects.record.cordon is Cordon.OURS
    assert [notice.message for notice in effects.notices] == ["cordoned: Reboot requires a drain"]


def test_an_existing_cordon_is_foreign_and_nothing_is_written_or_reported() -> None:
    effects = cordon(situation(node(unschedulable=True)), Effects(CaseRecord()))

    assert effects.unschedulable is None
    assert effects.record.cordon is Cordon.FOREIGN
    assert effects.notices == ()
