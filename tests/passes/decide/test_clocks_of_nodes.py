"""Conditions that changed in the future, by the clock of a node that was ahead: nothing waits for a day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from reconciler.model.clocks import Disagreement, own_times
from reconciler.model.node import Condition, Node
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import DRAIN_NOW, IMDS, NOW, REQUEST, minutes, node
from tests.support.worlds import world_of

DAY = timedelta(days=1)
TOMORROW = NOW + DAY
TIMES = own_times(NOW)


@pytest.mark.parametrize(
    ("changed", "beat", "believed"),
    [
        pytest.param(NOW - DAY, NOW, NOW - DAY, id="the past"),
        pytest.param(NOW + timedelta(seconds=20), NOW, NOW + timedelta(seconds=20), id="a clock like ours"),
        pytest.param(TOMORROW, TOMORROW + minutes(3), NOW - minutes(3), id="a clock that is ahead"),
        pytest.param(TOMORROW, NOW, None, id="a clock that was set back"),
        pytest.param(TOMORROW, None, None, id="no heartbeat"),
        pytest.param(None, NOW, None, id="no transition"),
    ],
)
def test_a_transition_in_the_future_is_as_old_as_the_clock_that_wrote_it_says(
    changed: datetime | None, beat: datetime | None, believed: datetime | None
) -> None:
    found = Condition("Ready", "True", heartbeat=beat, transition=changed).believed(TIMES)

    assert (found.transition, found.heartbeat) == (believed, beat)
    assert found.unreadable == ()


def test_the_age_by_a_clock_of_another_century_is_a_moment_that_can_be_read() -> None:
    last = datetime(2100, 12, 1, tzinfo=NOW.tzinfo)
    found = Condition("Ready", "True", heartbeat=last, transition=TOMORROW).believed(TIMES)

    assert found.transition is not None
    assert found.unreadable == ()


def test_while_our_own_clock_is_behind_a_transition_in_our_future_is_believed() -> None:
    changed = Condition("Ready", "True", heartbeat=TOMORROW, transition=TOMORROW)

    assert changed.believed(own_times(NOW, Disagreement(DAY))) == changed


def _on(history: History, condition: Condition) -> None:
    """Write a condition as its writer does, with its own moment of the change."""
    one = history.cluster.nodes["a"]
    others = tuple(other for other in one.conditions if other.type != condition.type)
    history.cluster.put_node(replace(one, conditions=(*others, condition)))


def _until(history: History, *, cordoned: bool, most: int = 20) -> float:
    """Run a pass a minute, and return after how many minutes the node is cordoned, or no longer is."""
    for minute in range(most):
        history.until_still()
        if history.cluster.nodes["a"].unschedulable is cordoned:
            return minute
        history.wait(minutes(1))
    return float("inf")


def _history(nodes: Sequence[Node], text: str = "") -> History:
    chosen: Settings = builders.settings(text)
    return History(world_of(nodes), chosen)


def test_a_node_that_is_ready_since_tomorrow_is_uncordoned_after_the_settle_time() -> None:
    quiet = {IMDS: builders.published(vm=builders.vm_name(0))}
    held = builders.held_node(builders.record(quiet_since=NOW), "a", annotations=quiet, unschedulable=True)
    history = _history([builders.on_vm(held, 0), node("b")])
    _on(history, Condition("Ready", "True", heartbeat=NOW, transition=TOMORROW))

    assert _until(history, cordoned=False) == 2


def test_a_node_that_is_not_ready_since_tomorrow_holds_its_place_no_longer_than_any() -> None:
    asking = node("a", annotations={REQUEST: DRAIN_NOW})
    broken = Condition("Ready", "False", heartbeat=TOMORROW + minutes(31), transition=TOMORROW)
    other = replace(node("b"), conditions=(broken,))

    assert _until(_history([asking, other], "budget: {maxUnavailable: 1}"), cordoned=True) == 0
