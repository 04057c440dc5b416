"""The experiment of the benchmark: planned starts leave places for short notices; few nodes stand empty."""

from __future__ import annotations

from tests.bench.ahead import DAY, DAYS, play
from tests.support.builders import settings


def test_planned_reboots_leave_the_place_to_nearly_all_short_notices() -> None:
    result = play(settings("budget: {maxUnavailable: 10%}"), DAY, seed=1)

    assert result.notices >= 36
    assert result.reboots == DAYS
    assert result.empty < 40
