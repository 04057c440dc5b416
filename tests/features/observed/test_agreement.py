"""What is observed would have come true: the same events, played in mode Observe and in mode Enforce."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.features.observed.cases import Fate
from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase
from tests.features.observed.scene import LEDGER, NEVER, WEB, Observing
from tests.support.builders import minutes, settings
from tests.support.worlds import carry_on, look

Play = Callable[[Observing], None]

NIGHT = 'windows: [{name: night, start: "22:00", end: "05:00"}]\n'


def all_at_once(observing: Observing) -> None:
    observing.announces(0, 1, 2, in_minutes=40)


def one_after_the_other(observing: Observing) -> None:
    for instance in range(3):
        observing.announces(instance, in_minutes=40 + 40 * instance)


class Kept:
    """Keeps the cases that end."""

    def __init__(self) -> None:
        self.cases: list[EndedCase] = []

    def keep(self, cases: list[EndedCase]) -> None:
        self.cases += cases


THREE = "budget: {maxUnavailable: 3}"
TEXTS = (
    THREE,
    "budget: {maxUnavailable: 1}",
    "budget: {maxUnavailable: 3, spacing: 5m}",
    f"{NIGHT}events: {{Reboot: {{outsideWindow: Never}}}}",
    f"{NIGHT}events: {{Reboot: {{outsideWindow: AtDeadline}}}}",
)


@pytest.mark.parametrize("play", [all_at_once, one_after_the_other])
@pytest.mark.parametrize(("text", "blocked"), [*((text, False) for text in TEXTS), (THREE, True)])
def test_what_would_have_been_is_what_is(play: Play, text: str, blocked: bool) -> None:
    observing, enforcing = (Observing(text, workloads=(WEB, LEDGER)) for _ in range(2))
    for scene in (observing, enforcing):
        if blocked:
            scene.world.cluster.add_budget(NEVER)
        play(scene)
    kept = Kept()
    enforcing.world.ended = kept  # type: ignore[assignment]  # a fake
    enforced = settings(text, mode="Enforce")
    observing.passes()
    announced = len(observing.following.open)
    for _ in range(160):
        observing.goes_on(1)
        look(enforcing.world, enforced)
        carry_on(enforcing.world)
        enforcing.world.advance(minutes(1))
        if not observing.following.open and len(kept.cases) == announced:
            break

    in_time = {case.place.node: case.outcome is CaseResult.DRAINED for case in kept.cases}
    assert len(in_time) == announced > 0
    assert {case.node: case.fate is Fate.IN_TIME for case in observing.cases} == in_time
