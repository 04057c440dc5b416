"""notHeld, by any hold of a person that has not ended."""

from __future__ import annotations

import pytest

from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.plan import Verdict
from tests.support.builders import NOW, PREFIX, ask, minutes, node, situation


@pytest.mark.parametrize(
    ("stops", "verdict"), [(None, Verdict.PASSED), (False, Verdict.FAILED), (True, Verdict.FAILED)]
)
def test_it_fails_while_the_hold_lasts(stops: bool | None, verdict: Verdict) -> None:
    text = hold_text(PersonHold(Word("alice@laptop", NOW, NOW + minutes(5)), stops is True))
    held = node(annotations={} if stops is None else {f"{PREFIX}/hold": text})
    answer = ask("notHeld", situation(held))

    assert answer.verdict is verdict
    assert answer.until == (NOW + minutes(5) if verdict is Verdict.FAILED else None)
    assert ask("notHeld", situation(held, now=NOW + minutes(5))).verdict is Verdict.PASSED
