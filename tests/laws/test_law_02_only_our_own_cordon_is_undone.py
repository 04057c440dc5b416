"""Law 2: only our own cordon is undone, or one that the settings adopt; a foreign one stays after us."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.record import Cordon, State, from_annotation
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.histories import History, small_world
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import NOW, RECORD
from tests.support.searching import QUARTER, examples
from tests.support.worlds import look

UNDONE = Hits()


@UNDONE.at_least(25, QUARTER)
@settings(max_examples=examples(100, QUARTER))
@given(strategies.worlds(more=strategies.ending_nodes), strategies.policies(), st.integers(0, 14))
def test_with_any_annotations_an_uncordon_undoes_only_what_the_record_calls_ours(
    world: World, policy: Settings, later: int
) -> None:
    before = dict(world.cluster.nodes)
    plan, _ = look(world, policy, NOW + timedelta(minutes=later))

    for node in plan.nodes:
        if node.todo.write is not None and node.todo.write.unschedulable is False:
            seen = before[node.node]
            text = seen.annotations.get(RECORD, "")
            known = from_annotation(text, seen.uid) if text else None
            ours = known is not None and known.case("default").cordon is Cordon.OURS
            adopted = bool(policy.adopt) and seen.labels.get(MECHANIC_LABEL) == "true"
            UNDONE.count()
            assert ours or adopted


HANDLED = Hits()


@HANDLED.at_least(40, QUARTER)
@settings(max_examples=examples(60, QUARTER))
@given(strategies.policies(mode="Enforce"))
def test_a_node_that_was_cordoned_before_us_is_cordoned_after_us(policy: Settings) -> None:
    history = History(small_world(), policy)
    history.cluster.cordon("n0")
    history.cluster.annotate("n0", builders.REQUEST, '{"kind":"Preempt"}')
    history.look()
    history.wait(timedelta(minutes=1))
    history.look()
    HANDLED.count(history.cluster.nodes["n0"].labels.get(builders.STATE) == State.IN_MAINTENANCE)
    history.cluster.annotate("n0", builders.REQUEST, None)
    for _ in range(30):
        history.wait(timedelta(minutes=1))
        history.look()

    assert history.cluster.nodes["n0"].unschedulable
    assert RECORD not in history.cluster.nodes["n0"].annotations


@pytest.mark.parametrize(
    ("text", "undone"),
    [
        pytest.param("", False, id="mechanic's cordon is not ours"),
        pytest.param("adopt: [mechanic]", True, id="unless the settings adopt it"),
    ],
)
def test_a_cordon_of_mechanics_is_undone_only_where_the_settings_adopt_it(text: str, undone: bool) -> None:
    history = History(small_world(), builders.settings(text))
    history.cluster.cordon("n0")
    history.cluster.label("n0", MECHANIC_LABEL, "true")
    for _ in range(5):
        history.look()
        history.wait(timedelta(minutes=1))

    assert history.cluster.nodes["n0"].unschedulable is not undone
