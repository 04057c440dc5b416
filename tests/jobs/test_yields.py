"""When `serve` runs a pass early because a drain gave its slot away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.runtime.yields import Yields
from reconciler.model.drains import DrainProgress, Phase
from tests.support.builders import NOW

GOES_ON = DrainProgress("a", "uid-a", Phase.RUNNING, slot=True)
BLOCKED = DrainProgress("a", "uid-a", Phase.RUNNING, blocked_since=NOW)
ASKS_AGAIN = replace(BLOCKED, slot=True)
WAITS = replace(BLOCKED, waits_for_slot=True)
ENDED = DrainProgress("a", "uid-a", Phase.TIMED_OUT)


@pytest.mark.parametrize(
    ("seen", "wakes"),
    [
        ([GOES_ON, BLOCKED], [False, True]),
        ([BLOCKED, ASKS_AGAIN, BLOCKED], [True, False, False]),
        ([BLOCKED, GOES_ON, BLOCKED], [True, False, True]),
        ([BLOCKED, ENDED, BLOCKED], [True, False, True]),
        ([WAITS, BLOCKED], [False, True]),
        ([BLOCKED, replace(BLOCKED, node="b")], [True, True]),
    ],
)
def test_a_drain_that_gives_its_slot_away_is_noticed_once(
    seen: list[DrainProgress], wakes: list[bool]
) -> None:
    yields = Yields()

    assert [yields.see(one) for one in seen] == wakes
