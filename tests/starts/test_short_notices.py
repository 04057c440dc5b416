"""A short notice finds a place at least as often as where every drain starts at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.event import Kind
from reconciler.model.values import replace
from reconciler.passes import decide
from reconciler.simulation.platform import Reporter, VmEvent
from tests.laws.hits import Hits
from tests.laws.test_law_14_the_forecast_comes_true import Announced, begin, run_on
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.searching import QUARTER, examples

EARLY = "\nevents: {Reboot: {start: Early}, Redeploy: {start: Early}}"
BUDGETS = (
    "budget: {maxUnavailable: 1}",
    "budget: {maxUnavailable: 2}",
    "budget: {maxUnavailable: 3, reserve: 1}",
)


@dataclass(frozen=True, slots=True)
class Short:
    """A notice that comes in so many minutes, so many minutes before the platform begins."""

    comes: int
    notice: int

    def event(self, node: str) -> VmEvent:
        lasts = minutes(10)
        date = NOW + minutes(self.comes + self.notice)
        return VmEvent(
            node, Kind.REBOOT, date, seconds=600, lasts=lasts, down=lasts, reported_by=Reporter.BOTH
        )


planned = st.builds(
    Announced,
    st.sampled_from((Kind.REBOOT, Kind.REDEPLOY)),
    st.sampled_from((45, 60, 90, 120, 150, 240, 300)),
    st.sampled_from((300, 1800)),
    st.just(False),
)
notices = st.builds(Short, st.sampled_from((1, 20, 40, 70, 100, 130, 200)), st.sampled_from((5, 10, 15)))


@contextmanager
def at_once() -> Iterator[None]:
    """Let the program start every drain as soon as it may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide, "schedules", lambda *_: {})
        yield


def served(events: list[Announced], shorts: list[Short], text: str) -> int:
    """Return for how many short notices a drain began before the platform did."""
    history = begin(events, builders.settings(text))
    # The last node of `begin` has no event, and those of the short notices come after it.
    first = len(events) + 1
    for number, one in enumerate(shorts, first):
        name = f"n{number}"
        node = builders.on_vm(builders.node(name, conditions=(builders.quiet(),)), number)
        history.cluster.add_node(replace(node, boot_id="boot-1"))
        announce = partial(history.world.platform.announce, one.event(name))
        history.world.clock.at(NOW + minutes(one.comes), announce)
    none = Announced(Kind.REBOOT, 0, 0, requested=False)
    _, began = run_on(history, [*events, *[none] * (1 + len(shorts))])
    return sum(
        f"n{number}" in began and began[f"n{number}"] < NOW + minutes(one.comes + one.notice)
        for number, one in enumerate(shorts, first)
    )


BETTER = Hits()


@pytest.mark.heavy
@BETTER.at_least(10, QUARTER)
@settings(max_examples=examples(40, QUARTER))
@given(
    st.lists(planned, min_size=1, max_size=4),
    st.lists(notices, min_size=1, max_size=3),
    st.sampled_from(BUDGETS),
)
def test_planned_starts_serve_at_least_as_many_short_notices_as_starts_at_once(
    events: list[Announced], shorts: list[Short], text: str
) -> None:
    ours = served(events, shorts, text)
    with at_once():
        others = served(events, shorts, text + EARLY)
    BETTER.count(ours > others)

    assert ours >= others
