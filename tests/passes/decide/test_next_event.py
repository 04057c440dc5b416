"""A node that was drained for one event, and has another one later: it comes back where that is worth it."""

from __future__ import annotations

import pytest

from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes, node
from tests.support.worlds import world_of


@pytest.mark.parametrize(
    ("after", "comes_back"),
    [
        # The next drain may start an hour and a quarter before its date.
        pytest.param(60 + 75, False, id="the next drain starts in an hour"),
        pytest.param(60 + 75 + 10, True, id="later"),
    ],
)
def test_a_node_comes_back_between_two_events_that_are_far_enough_apart(
    after: float, comes_back: bool
) -> None:
    asked = '{"kind":"Reboot","id":"CHG-1"}'
    history = History(world_of([node("a", annotations={REQUEST: asked}), node("b")]), builders.settings())
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable

    date = NOW + minutes(after)
    asked = f'{{"kind":"Reboot","id":"CHG-2","notBefore":"{date:%Y-%m-%dT%H:%M:%SZ}"}}'
    history.cluster.annotate("a", REQUEST, asked)
    for _ in range(4):
        history.until_still()
        history.wait(minutes(1))

    assert history.cluster.nodes["a"].unschedulable is not comes_back
