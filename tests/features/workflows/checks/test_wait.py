"""wait: the time since the last transition."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, at, given
from tests.support.builders import NOW

SINCE = NOW - timedelta(minutes=12)


@pytest.mark.parametrize(
    ("duration", "verdict"),
    [("10m", Verdict.PASSED), ("12m", Verdict.FAILED), ("15m", Verdict.FAILED), (0, Verdict.PASSED)],
)
def test_more_than_the_duration_has_passed(duration: object, verdict: Verdict) -> None:
    assert ask("wait", given(since=SINCE), duration=duration).verdict is verdict


def test_the_answer_changes_when_it_says() -> None:
    scene = given(since=SINCE)

    answer = ask("wait", scene, duration="15m")

    assert answer.until is not None
    assert ask("wait", at(scene, answer.until), duration="15m").verdict is Verdict.PASSED
