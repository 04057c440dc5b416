"""What the measurement of a notice measures: the way to the cordon, no pause that its own last round made."""

from __future__ import annotations

import pytest

from jobs.runtime.pass_loop import TOGETHER, About, Cause
from tests.bench.wake import rested
from tests.support.fakes.timer import play

NOTICE = Cause("node worker-1", About.NOTICE)
ROUNDS = 100


def test_the_end_of_the_last_event_delays_no_pass_of_the_next_round() -> None:
    moments = [0.0]
    for _ in range(ROUNDS):
        moments.append(moments[-1] + TOGETHER + rested())
    assert play([(at, NOTICE) for at in moments]).delay(NOTICE) == pytest.approx([TOGETHER] * len(moments))
