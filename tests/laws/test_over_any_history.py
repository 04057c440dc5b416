"""Laws 1, 2 and 8 over any history of the platform and of people: one player checks them all."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.plan import NodePlan
from reconciler.model.writes import NodeWrite
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.clock import Actor
from tests.laws.histories import (
    History,
    Step,
    come_to_an_end,
    nothing,
    people_steps,
    platform_steps,
    small_world,
    waits,
)
from tests.laws.hits import Hits
from tests.support import strategies
from tests.support.searching import examples
from tests.support.worlds import starts_on_open_nodes

STARTS, UNCORDONS, NOTICES = Hits(), Hits(), Hits()
OF_A_FACT = {"MaintenanceDrainTimedOut", "MaintenanceDeadlinePassed", "MaintenanceMissed"}
ENDS = [(come_to_an_end, timedelta(minutes=1)), *[(nothing, timedelta(minutes=6))] * 3]


@STARTS.at_least(40)
@UNCORDONS.at_least(30)
@NOTICES.at_least(25)
@settings(max_examples=examples(250))
@given(
    st.one_of(strategies.policies(mode="Enforce"), strategies.policies()),
    st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits), max_size=14),
)
def test_no_drain_starts_on_an_open_node_no_foreign_cordon_is_undone_and_events_come_with_changes(
    policy: Settings, steps: list[tuple[Step, timedelta]]
) -> None:
    history = History(small_world(), policy)
    ours: set[str] = set()

    def watch(write: Call) -> None:
        if isinstance(write.content, NodeWrite) and write.content.unschedulable is True:
            ours.add(write.node)
        if isinstance(write.content, NodeWrite) and write.content.unschedulable is False:
            UNCORDONS.count()
            assert write.node in ours, f"{write.node}: somebody else's cordon was undone"
            ours.discard(write.node)

    history.api.before_write = watch
    for happen, wait in (*steps, *ENDS):
        # One thing a pass: a cordon that is undone and done again unseen can't be distinguished from ours.
        happen(history)
        history.wait(wait)
        before = len(history.api.done)
        plan, _ = history.look()
        written = history.api.done[before:]
        notified = {write.node for write in written if write.what == "notify"}
        NOTICES.count(len(notified))
        assert notified <= {write.node for write in written if write.what == "patch_node"}
        assert all(_changes(node) for node in plan.nodes if node.todo.notices)
        ours &= {name for name, node in history.cluster.nodes.items() if node.unschedulable}

    STARTS.count(len(history.world.log.of(Actor.US, "drain ordered")))
    assert starts_on_open_nodes(history.world) == []


def _changes(node: NodePlan) -> bool:
    """Whether something about the case changes, of which an Event can tell."""
    ended = node.todo.write is not None and '"done"' in str(node.todo.write.annotations)
    late = any(notice.reason in OF_A_FACT for notice in node.todo.notices)
    return bool(node.transitions) or ended or late
