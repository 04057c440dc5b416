"""drain: write down that the node is drained from now on."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.event import Kind
from reconciler.model.record import CaseRecord, DrainRecord
from reconciler.model.structs import replace
from reconciler.profiles.situation import Effects, Situation
from reconciler.profiles.triggers.nodes import drain
from tests.support import builders
from tests.support.builders import NOW, event, judged, known, minutes, situation


def test_the_beginning_is_kept_to_the_second_as_the_annotation_keeps_it() -> None:
    effects = drain(situation(now=NOW + timedelta(microseconds=7)), Effects(CaseRecord()))

    assert effects.record.drain == DrainRecord(NOW, attempt=1, done=None)


FAR = known(Kind.REDEPLOY, ids=("B2",), not_before=NOW + timedelta(days=6))
CLOSED = builders.settings('windows: [{name: night, start: "22:00", end: "23:00"}]')


def _situation(held: CaseRecord) -> Situation:
    near = judged(event(ids=("A1",), not_before=NOW + minutes(5)), CLOSED)
    far = judged(event(Kind.REDEPLOY, ids=("B2",), not_before=FAR.not_before), CLOSED)
    return situation(None, near, far, chosen=CLOSED, held=held)


def test_an_event_for_which_no_drain_may_begin_waits() -> None:
    held = replace(builders.record(events=(known(ids=("A1",)), FAR)), drain=None)
    effects = drain(_situation(held), Effects(held))

    assert [one.waits for one in effects.record.events] == [False, True]


def test_a_drain_that_is_done_starts_again_only_for_a_kind_that_may_evict_more() -> None:
    done = builders.record(events=(known(ids=("Z9",)), replace(known(ids=("A1",)), waits=True)))
    effects = drain(_situation(done), Effects(done))
    assert effects.record.drain == done.drain
    assert [one.waits for one in effects.record.events] == [False, False]

    other = replace(done, events=(known(Kind.FREEZE, ids=("Z9",)), replace(known(ids=("A1",)), waits=True)))
    assert drain(_situation(other), Effects(other)).record.drain == DrainRecord(NOW)
