"""hooksDone: hooks hold a step for a limited time."""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind
from reconciler.model.plan import Verdict
from reconciler.model.structs import replace
from tests.features.workflows.checks.scene import ask, config, given
from tests.support.builders import NOW, event, judged, minutes, node, situation

HELD = given(
    node=node("a", annotations={"node-maintenance.dev/pre-drain.database": "team storage"}),
    since=NOW - minutes(5),
)


@pytest.mark.parametrize(
    ("keys", "verdict"),
    [
        ({}, Verdict.FAILED),
        ({"step": "post-drain"}, Verdict.PASSED),
        ({"timeout": "5m"}, Verdict.PASSED),
        ({"timeout": "5m1s"}, Verdict.FAILED),
    ],
)
def test_a_hook_holds_its_step_for_a_limited_time(keys: dict[str, object], verdict: Verdict) -> None:
    assert ask("hooksDone", HELD, **keys).verdict is verdict


def test_the_answer_names_the_hook_and_its_end() -> None:
    answer = ask("hooksDone", HELD)

    assert answer.until == NOW + minutes(5)
    assert answer.reason == (
        "hook pre-drain.database (team storage) holds the drain until its owner removes the annotation,"
        " 2026-11-21T12:05:00Z at most"
    )


def test_hooks_do_not_hold_what_cannot_wait() -> None:
    started = judged(event(Kind.PREEMPT, not_before=NOW))
    urgent = replace(HELD, platform=situation(None, started))
    later = replace(HELD, platform=situation(None, judged(event(not_before=NOW + minutes(600)))))

    assert ask("hooksDone", urgent).verdict is Verdict.PASSED
    assert ask("hooksDone", later).verdict is Verdict.FAILED


def test_a_step_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="pre-drain"):
        config("hooksDone", step="predrain")
