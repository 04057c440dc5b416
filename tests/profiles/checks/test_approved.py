"""approved, by the settings and by what is approved."""

from __future__ import annotations

from reconciler.model.event import Kind
from reconciler.model.instructions import Approval, Kept, Wait, Word, approval_text
from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.model.structs import replace
from tests.support.builders import NOW, PREFIX, ask, event, judged, known, minutes, node, situation

ASKED = event(ids=("E",), not_before=NOW + minutes(10))
BY_CAROL = {
    f"{PREFIX}/approved": approval_text(Approval(Word("carol@laptop", NOW), None, (known(ids=("E",)),)))
}


def unapproved(one: JudgedEvent, until: int | None = None) -> JudgedEvent:
    end = NOW + minutes(until) if until is not None else None
    return replace(one, kept=Kept(approval=Wait("nobody has agreed", end)))


def test_it_fails_until_the_deadline_proceeds_without_an_approval() -> None:
    answer = ask("approved", situation(None, unapproved(judged(ASKED), until=5)))

    assert (answer.verdict, answer.reason, answer.until) == (
        Verdict.FAILED,
        "nobody has agreed",
        NOW + minutes(5),
    )


def test_one_event_that_needs_no_approval_is_enough() -> None:
    other = judged(event(Kind.PREEMPT))

    assert ask("approved", situation(None, unapproved(judged(ASKED)), other)).verdict is Verdict.PASSED


def test_an_event_that_may_not_start_now_opens_nothing_for_another_one() -> None:
    later = replace(judged(event(Kind.TERMINATE)), open=False)

    assert ask("approved", situation(None, unapproved(judged(ASKED)), later)).verdict is Verdict.FAILED


def test_it_says_who_has_approved() -> None:
    found = ask("approved", situation(node(annotations=BY_CAROL), judged(ASKED)))

    assert found.verdict is Verdict.PASSED
    assert "carol@laptop" in found.reason
    assert ask("approved", situation(node(annotations=BY_CAROL), judged(event(ids=("F",))))).reason == ""
