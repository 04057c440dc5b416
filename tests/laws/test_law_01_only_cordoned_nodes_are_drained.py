"""Law 1: nothing is evicted from a node that is not cordoned."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.errors import Conflict, Forbidden, NotFound, Unreachable
from reconciler.model.writes import NodeWrite
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.laws.hits import Hits
from tests.support import strategies
from tests.support.searching import QUARTER, examples
from tests.support.worlds import look, starts_on_open_nodes

ORDERS = Hits()


@ORDERS.at_least(30, QUARTER)
@settings(max_examples=examples(300, QUARTER))
@given(strategies.worlds(more=strategies.asking_nodes), strategies.policies(mode="Enforce"))
def test_a_drain_is_only_ordered_for_a_node_that_is_cordoned_or_is_being_cordoned(
    world: World, policy: Settings
) -> None:
    plan, _ = look(world, policy)

    for node in plan.nodes:
        if node.todo.drain is not None:
            cordons = node.todo.write is not None and node.todo.write.unschedulable is True
            uncordons = node.todo.write is not None and node.todo.write.unschedulable is False
            ORDERS.count()
            assert node.status.unschedulable or cordons
            assert not uncordons


FAILED = Hits()
FAILURES = (Conflict, NotFound, Unreachable, Forbidden)


@FAILED.at_least(50, QUARTER)
@settings(max_examples=examples(300, QUARTER))
@given(
    strategies.worlds(more=strategies.asking_nodes),
    strategies.policies(mode="Enforce"),
    st.sampled_from(FAILURES),
    st.lists(st.sampled_from((None, *FAILURES)), max_size=5),
)
def test_no_drain_starts_where_the_cordon_could_not_be_written(
    world: World,
    policy: Settings,
    first: type[Conflict | NotFound | Unreachable | Forbidden],
    then: list[type[Conflict | NotFound | Unreachable | Forbidden] | None],
) -> None:
    cordons, others = [first, *then], list(then)

    def fail(write: Call) -> None:
        if write.what != "patch_node":
            return
        cordon = isinstance(write.content, NodeWrite) and write.content.unschedulable is True
        failures = cordons if cordon else others
        failure = failures.pop(0) if failures else None
        if failure is not None:
            FAILED.count(cordon)
            raise failure(f"{write.what} {write.node} failed")

    world.api.before_write = fail
    look(world, policy)

    assert starts_on_open_nodes(world) == []
