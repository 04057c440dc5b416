"""What a sweep says of its drains: a pass only knows that a drain runs."""

from __future__ import annotations

import pytest

from jobs.commands.sweep import ended_drains
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.outcome import Outcome, Result


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.RUNNING, Result.RUNNING),
        (Phase.DRAINED, Result.DONE),
        (Phase.TIMED_OUT, Result.LATER),
        (Phase.FAILED, Result.FAILED),
    ],
)
def test_a_drain_is_done_only_when_the_node_is_drained(phase: Phase, expected: Result) -> None:
    ordered = (Outcome("a", "cordon", Result.DONE), Outcome("a", "drain", Result.RUNNING))
    found = ended_drains(ordered, {"a": DrainProgress("a", "uid-a", phase)})

    assert [one.result for one in found] == [Result.DONE, expected]


def test_a_drain_that_could_not_be_ordered_stays_failed() -> None:
    refused = (Outcome("a", "drain", Result.FAILED, "no"),)

    assert ended_drains(refused, {"a": DrainProgress("a", "uid-a", Phase.DRAINED)}) == refused
