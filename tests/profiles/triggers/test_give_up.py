"""giveUp: uncordon the node, and ignore the event whose requests failed."""

from __future__ import annotations

import pytest

from reconciler.model.record import Cordon, SelfService
from reconciler.model.structs import replace
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.nodes import give_up
from tests.support.builders import NOW, situation
from tests.support.planning import azure_node, drained


@pytest.mark.parametrize(("cordon", "written"), [(Cordon.OURS, False), (Cordon.FOREIGN, None)])
def test_our_cordon_is_undone_and_the_event_ignored(cordon: Cordon, written: bool | None) -> None:
    held = replace(drained(SelfService(NOW, 3, "boot-1")), cordon=cordon)
    effects = give_up(situation(azure_node(), held=held), Effects(held))

    assert effects.unschedulable is written
    assert effects.record.dismissed == held.events
    assert (effects.record.self_service, effects.record.drain, effects.record.events) == (None, None, ())
    assert "after 3 requests" in effects.notices[0].message
