"""notDeferred, by what the deadline of each event leaves of a deferral."""

from __future__ import annotations

from reconciler.model.event import Kind
from reconciler.model.instructions import Kept, Wait
from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.model.structs import replace
from tests.support.builders import NOW, ask, event, judged, minutes, situation


def deferred(one: JudgedEvent, until: int) -> JudgedEvent:
    return replace(one, kept=Kept(deferral=Wait("somebody wants it later", NOW + minutes(until))))


def test_it_changes_at_the_first_end() -> None:
    both = (deferred(judged(event()), 60), deferred(judged(event(Kind.TERMINATE)), 30))
    answer = ask("notDeferred", situation(None, *both))

    assert (answer.verdict, answer.until) == (Verdict.FAILED, NOW + minutes(30))


def test_one_event_whose_deadline_demands_the_drain_is_enough() -> None:
    both = (deferred(judged(event()), 60), judged(event(Kind.TERMINATE)))

    assert ask("notDeferred", situation(None, *both)).verdict is Verdict.PASSED
