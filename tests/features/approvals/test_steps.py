"""What the check says by which a start waits for an approval."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.features.approvals.permissions import APPROVED
from reconciler.model.event import Kind
from reconciler.model.instructions import Kept, Permission, Wait, Word, permission_text
from reconciler.model.plan import Opening
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.passes.parts import Parts, Sources
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed
from tests.support.builders import NOW, PREFIX, ask, event, judged, known, minutes, node, read_of, situation


def at(later: float) -> datetime:
    """So many minutes from now."""
    return NOW + minutes(later)


BY_CAROL = permission_text(Permission(Word("carol@laptop", NOW), events=(known(ids=("E",)),), kind=APPROVED))
WITH_APPROVAL = node(annotations={f"{PREFIX}/approved": BY_CAROL})
ASKED = judged(event(ids=("E",), not_before=at(10)))
UNAPPROVED = replace(ASKED, kept=Kept(of_features={"approved": Wait("nobody has agreed", at(5))}))
ANSWERS = {
    "until the deadline overrules": (situation(None, UNAPPROVED), failed("nobody has agreed", at(5))),
    "an event that needs none is enough": (
        situation(None, UNAPPROVED, judged(event(Kind.PREEMPT))),
        passed(),
    ),
    "but not if it may not start now": (
        situation(None, UNAPPROVED, replace(judged(event(Kind.TERMINATE)), opening=Opening())),
        failed("nobody has agreed", at(5)),
    ),
    "who has approved": (situation(WITH_APPROVAL, ASKED), passed("carol@laptop")),
}


@pytest.mark.parametrize(("seen", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_answers(seen: Situation, expected: CheckResult) -> None:
    answer = ask("approved", seen)

    read = read_of(seen.node, wanted(seen.settings, Parts(Sources())))
    assert ask("approved", replace(seen, node=read)) == answer, "no pass reads all that the check reads"
    assert expected.reason in answer.reason
    assert (answer.verdict, answer.until, answer.holds) == (expected.verdict, expected.until, expected.holds)


def test_an_approval_of_another_event_is_not_named() -> None:
    assert ask("approved", situation(WITH_APPROVAL, judged(event(ids=("F",))))).reason == ""
