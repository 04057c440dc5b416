"""The experiment of the benchmark: planned starts leave places for short notices; few nodes stand empty."""

from __future__ import annotations

import pytest

from tests.bench.ahead import DAY, play


@pytest.mark.heavy
def test_planned_reboots_leave_the_place_to_nearly_all_short_notices() -> None:
    result = play("budget: {maxUnavailable: 10%}", DAY, seed=1, days=4)

    assert result.notices >= 14, "of 16"
    assert result.reboots == 4
    assert result.empty < 16
