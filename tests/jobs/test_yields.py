"""When `serve` runs a pass early because a drain gave its slot away."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from jobs.commands import sweep
from jobs.runtime.acting import Acting, Yields
from jobs.runtime.clock import SystemClock
from jobs.runtime.process import Observers
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.values import replace
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


class _Sweep:
    """A sweep over one drain that is blocked from the start on, on a clock of its own."""

    def __init__(self) -> None:
        self.time = NOW
        self.passes: list[datetime] = []
        self.drainer = self

    def now(self) -> datetime:
        return self.time

    def drains_run(self) -> bool:
        return True

    def run_pass(self) -> tuple[None, tuple[()]]:
        self.passes.append(self.time)
        return None, ()

    def progress(self) -> Mapping[str, DrainProgress]:
        return {"a": BLOCKED} if self.passes else {}

    def wait(self, seconds: float) -> bool:
        self.time += timedelta(seconds=seconds)
        return False


def test_a_sweep_runs_a_pass_once_when_a_drain_gives_its_slot_away() -> None:
    run = _Sweep()
    story = cast("sweep.Story", SimpleNamespace(add=lambda *_: None))
    until = NOW + sweep.LOOK_AGAIN
    sweep._passes(cast("Acting", run), Observers(), cast("SystemClock", run), until, threading.Event(), story)

    assert run.passes == [NOW, NOW + sweep.GLANCE]
