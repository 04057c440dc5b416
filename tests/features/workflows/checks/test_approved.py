"""approved: a person's approval for one run of a workflow."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from reconciler.features.workflows.input import CheckInput
from reconciler.model.instructions import Approval, Word, approval_text
from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, given
from tests.support.builders import NOW, minutes, node

KEY = "node-maintenance.dev/approved"


def with_text(text: str) -> CheckInput:
    """A node with this annotation, in its state for an hour."""
    return given(node=node("a", annotations={KEY: text}), since=NOW - minutes(60))


def approval(ago: timedelta, *, until: timedelta | None = None) -> str:
    """An approval that was given so long ago."""
    return approval_text(
        Approval(Word("alice", NOW - ago, NOW + until if until is not None else None), workflows=True)
    )


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        pytest.param(approval(minutes(59)), Verdict.PASSED, id="for this run"),
        pytest.param(approval(minutes(61)), Verdict.FAILED, id="for the run before"),
        pytest.param(approval(minutes(9), until=minutes(1)), Verdict.PASSED, id="it still applies"),
        pytest.param(approval(minutes(9), until=minutes(-1)), Verdict.FAILED, id="it has ended"),
        pytest.param(approval(minutes(-9)), Verdict.FAILED, id="from the future"),
        pytest.param('{"by": "alice", "workflows": true}', Verdict.FAILED, id="without a time"),
        pytest.param('{"at": "2026-11-21T11:59:00Z", "events": []}', Verdict.FAILED, id="for events only"),
        pytest.param("yes", Verdict.UNKNOWN, id="no JSON"),
        pytest.param(json.dumps({"at": "x" * 40_000}), Verdict.UNKNOWN, id="too long"),
    ],
)
def test_an_approval_is_for_one_run(text: str, verdict: Verdict) -> None:
    answer = ask("approved", with_text(text))

    assert answer.verdict is verdict
    assert verdict is Verdict.PASSED or "reconciler approve a" in answer.reason


def test_nobody_has_approved() -> None:
    answer = ask("approved", given())

    assert answer.verdict is Verdict.FAILED
    assert answer.reason == "nobody has approved it yet; reconciler approve a does"


def test_the_answer_changes_when_the_approval_ends() -> None:
    assert ask("approved", with_text(approval(minutes(9), until=minutes(5)))).until == NOW + minutes(5)
