"""What the measurement of a notice measures: the way to the cordon, no pause that its own last round made."""

from __future__ import annotations

from jobs.runtime.pass_loop import TOGETHER, About, Cause, Pacer
from tests.bench.wake import rested

NOTICE = Cause("node worker-1", About.NOTICE)
ROUNDS = 100


def test_the_end_of_the_last_event_delays_no_pass_of_the_next_round() -> None:
    pacer = Pacer()
    now = 0.0
    for _ in range(ROUNDS):
        pacer.note(NOTICE, now)
        assert pacer.due() == now + TOGETHER
        pacer.begin(now)
        pacer.end(now)
        now += rested()
