"""dismiss: ignore the events that a person's uncordon was about."""

from __future__ import annotations

from reconciler.model.plan import NoticeType
from reconciler.model.record import Cordon
from reconciler.profiles.case import CaseView
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.nodes import dismiss
from tests.support import builders
from tests.support.builders import event, judged, known, situation

HELD = builders.record(events=(known(ids=("A1",)),))


def test_the_case_is_closed_and_its_events_are_remembered() -> None:
    effects = dismiss(situation(held=HELD, case=CaseView((judged(event()),))), Effects(HELD))

    assert effects.record.dismissed == HELD.events
    assert (effects.record.events, effects.record.cordon, effects.record.drain) == ((), Cordon.NONE, None)
    assert effects.unschedulable is None
    assert [notice.type for notice in effects.notices] == [NoticeType.WARNING]


def test_events_that_have_gone_need_not_be_remembered() -> None:
    assert dismiss(situation(held=HELD, case=CaseView()), Effects(HELD)).record.dismissed == ()
