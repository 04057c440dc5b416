"""Law 20: the plan from what changed is the plan of a new process that reads everything."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.instructions import PersonHold, Word
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.plan import Plan
from reconciler.model.ports import Look, LookRequest
from reconciler.model.snapshot import Agents, Remediator
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.passes.store import Store
from reconciler.run import PARTS, rehearse, run_pass
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.histories import History, Step, people_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import NOW
from tests.support.searching import QUARTER, examples
from tests.support.worlds import carry_on, look, store_of, world_of


def _both(world: World, policy: Settings, store: Store) -> tuple[Plan, Plan]:
    """Return the plan that follows from the store, and the plan from nothing."""
    return rehearse(world.outside, policy, world.now, store), rehearse(world.outside, policy, world.now)


RESTED = Hits()


@RESTED.at_least(100, QUARTER)
@settings(max_examples=examples(150, QUARTER))
@given(
    strategies.policies(),
    st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits), max_size=12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_after_any_history_the_plan_is_that_of_a_new_process(
    policy: Settings, steps: list[tuple[Step, timedelta]], passes: list[bool]
) -> None:
    history = History(small_world(), policy)
    store = store_of(history.world)
    for (happen, wait), acts in zip(steps, passes, strict=False):
        happen(history)
        history.wait(wait)
        if acts:
            history.look()
        remembered, fresh = _both(history.world, policy, store)
        RESTED.count(len(fresh.fleet) - len(fresh.nodes))
        assert remembered == fresh


UNSELECTED = Hits()
"""Nodes with maintenance that the settings do not select."""


def _selected(name: str, *, on: bool) -> Step:
    def happen(history: History) -> None:
        if name in history.cluster.nodes:
            history.cluster.label(name, "agentpool", "chosen" if on else "other")

    return happen


selections: st.SearchStrategy[Step] = st.builds(_selected, st.sampled_from(("n0", "n1")), on=st.booleans())


@UNSELECTED.at_least(30, QUARTER)
@settings(max_examples=examples(80, QUARTER))
@given(st.lists(st.tuples(st.one_of(platform_steps, selections), waits, st.booleans()), max_size=10))
def test_the_store_keeps_the_nodes_that_are_not_selected_right(
    steps: list[tuple[Step, timedelta, bool]],
) -> None:
    policy = builders.settings("nodeSelector: {agentpool: chosen}")
    history = History(small_world(), policy)
    store = store_of(history.world)
    for happen, wait, acts in steps:
        happen(history)
        history.wait(wait)
        if acts:
            history.look()
        remembered, fresh = _both(history.world, policy, store)
        UNSELECTED.count(sum(plan.unguarded is not None for plan in fresh.nodes))
        assert remembered == fresh


def _quiet_fleet(count: int) -> World:
    """Return nodes without any news, with a heartbeat of now and none later."""
    return world_of(
        builders.node(f"n{number}", pool=f"p{number % 2}", conditions=(builders.quiet(),))
        for number in range(count)
    )


class _Counting(Store):
    """Says how many nodes the last pass had to look at."""

    looked = 0

    def chosen(self, look: Look, now: datetime) -> tuple[Node, ...]:
        nodes = super().chosen(look, now)
        self.looked = len(nodes)
        return nodes


def test_a_pass_looks_at_what_changed_and_at_cases() -> None:
    world, policy = _quiet_fleet(50), builders.settings("budget: {maxUnavailable: 2}")
    store = _Counting(PARTS)
    rehearse(world.outside, policy, NOW, store)
    assert store.looked == 50

    rehearse(world.outside, policy, NOW, store)
    assert store.looked == 0

    world.cluster.annotate("n7", builders.REQUEST, builders.DRAIN_NOW)
    for _ in range(2):
        plan = rehearse(world.outside, policy, NOW, store)
        assert (store.looked, [node.node for node in plan.nodes]) == (1, ["n7"])
    assert len(plan.fleet) == 50


WORKFLOWS = """budget: {maxUnavailable: 2}
profiles:
  instances:
    check:
    - {type: hasLabel, name: wanted, config: {key: example.com/reboot, value: 'true'}}
    - {type: maxMaintenance, name: room, config: {max: 1}}
    - {type: condition, name: bad, config: {type: Bad, status: 'True'}}
    trigger: [{type: cordon, name: cordon}, {type: uncordon, name: uncordon}]
  profiles:
  - name: default
    operational: {transitions: [{check: "wanted", next: maintenance-required}]}
    maintenance-required: {transitions: [{check: "wanted && room", next: in-maintenance}]}
    in-maintenance:
      enter: cordon
      transitions: [{check: "!wanted && !bad", trigger: uncordon, next: operational}]
  - name: other
    operational: {transitions: [{check: "bad && room", next: in-maintenance}]}
    in-maintenance: {transitions: [{check: "!bad", next: operational}]}
"""
WORKED = Hits()
_NAMES = st.sampled_from(("n0", "n1", "n2", "n3"))
_CHANGES = st.one_of(
    st.tuples(st.just("label"), _NAMES, st.sampled_from(("true", "false", None))),
    st.tuples(st.just("profiles"), _NAMES, st.sampled_from(("other", "default--other", None))),
    st.tuples(st.just("condition"), _NAMES, st.sampled_from(("True", "False"))),
    st.tuples(st.just("cordon"), _NAMES, st.booleans()),
    st.tuples(st.just("data"), _NAMES, st.sampled_from(("nonsense", None))),
    st.tuples(st.just("hold"), _NAMES, st.sampled_from(('{"by":"ann"}', None))),
    st.tuples(st.just("upgrade"), _NAMES, st.booleans()),
)


def _change(world: World, change: tuple[str, str, Any]) -> None:
    what, name, value = change
    match what:
        case "label":
            world.cluster.label(name, "example.com/reboot", value)
        case "profiles":
            world.cluster.label(name, keys_of(builders.PREFIX).maintenance_profile, value)
        case "condition":
            world.cluster.set_condition(name, builders.condition("Bad", value))
        case "cordon":
            world.cluster.cordon(name, on=value)
        case "data":
            world.cluster.annotate(name, keys_of(builders.PREFIX).maintenance_data, value)
        case "hold":
            world.cluster.annotate(name, keys_of(builders.PREFIX).hold, value)
        case "upgrade":
            for key, written in builders.IN_UPGRADE.items():
                world.cluster.annotate(name, key, written if value else None)


@WORKED.at_least(20, QUARTER)
@settings(max_examples=examples(100, QUARTER))
@given(st.lists(st.tuples(_CHANGES, st.integers(0, 3)), min_size=4, max_size=12))
def test_workflows_leave_nodes_alone_without_a_difference(changes: list[tuple[Any, int]]) -> None:
    world, policy = _quiet_fleet(4), builders.settings(WORKFLOWS)
    store = store_of(world)
    look(world, policy)
    for change, passes in changes:
        _change(world, change)
        world.advance(timedelta(seconds=40))
        for _ in range(passes):
            look(world, policy)
        remembered, fresh = _both(world, policy, store)
        parts = [part for node in fresh.nodes for part in node.of_features.values()]
        after = {state for part in parts for _, state in part.states.values()}
        WORKED.count(len(after) > 1)
        assert remembered == fresh


_ASK_NOTHING = """budget: {maxUnavailable: 2}
publish: [%s]
overrides: [{nodeSelector: {agentpool: p1}, events: {Freeze: {drain: true}}}]
"""
PAUSED = Hits()
_PAUSES = st.one_of(
    st.tuples(st.just("event"), _NAMES, st.sampled_from(("Freeze", "Freeze", "Reboot", ""))),
    st.tuples(st.just("quiet"), _NAMES, st.none()),
    st.tuples(st.just("hold all"), _NAMES, st.sampled_from((None, 1, 30))),
    st.tuples(st.just("remediator"), _NAMES, st.booleans()),
    st.tuples(st.just("cordon"), _NAMES, st.booleans()),
    st.tuples(st.just("gone"), _NAMES, st.none()),
)


def _pause(world: World, change: tuple[str, str, Any]) -> None:
    what, name, value = change
    cluster = world.cluster
    match what:
        case "event" if name in cluster.nodes:
            status = f"Scheduled: {world.now + timedelta(minutes=50):%a, %d %b %Y %H:%M:%S GMT}"
            message = f"{value or 'Freeze'} {status if value else 'Started'}. DurationInSeconds: 9."
            cluster.set_condition(name, builders.condition("VMEventScheduled", "True", message, at=world.now))
        case "quiet" if name in cluster.nodes:
            cluster.set_condition(name, builders.quiet(world.now))
        case "hold all":
            said = Word("ann", world.now, scope="all", until=world.now + timedelta(minutes=value or 0))
            holds = (PersonHold(said, stops=False),) if value else ()
            cluster.ledger = replace(cluster.ledger, holds=holds)
        case "remediator":
            cluster.remediator = Remediator(True, on_freeze=value)
        case "cordon" if name in cluster.nodes:
            cluster.cordon(name, on=value)
        case "gone" if len(cluster.nodes) > 1:
            cluster.nodes.pop(name, None)


@PAUSED.at_least(50, QUARTER)
@settings(max_examples=examples(100, QUARTER))
@given(
    st.sampled_from(("", *strategies.SIGNS)),
    st.lists(
        st.tuples(_PAUSES, st.integers(0, 3), st.sampled_from((0, 0, 40, 400))), min_size=4, max_size=12
    ),
)
def test_events_that_ask_for_nothing_leave_nodes_alone_without_a_difference(
    publish: str, changes: list[tuple[Any, int, int]]
) -> None:
    world, policy = _quiet_fleet(4), builders.settings(_ASK_NOTHING % publish)
    store = _Counting(PARTS)
    run_pass(world.outside, policy, world.now, store)
    for change, passes, wait in changes:
        _pause(world, change)
        world.advance(timedelta(seconds=wait))
        for _ in range(passes):
            run_pass(world.outside, policy, world.now, store)
        remembered, fresh = _both(world, policy, store)
        PAUSED.count(len(fresh.nodes) > store.looked)
        assert remembered == fresh


def test_the_end_of_a_hold_of_all_nodes_is_seen_on_a_node_with_an_event_that_asks_for_nothing() -> None:
    world, policy, store = _quiet_fleet(2), builders.settings(), _Counting(PARTS)
    _pause(world, ("event", "n0", "Freeze"))
    _pause(world, ("hold all", "n0", 1))
    for seconds in (0, 40, 40):
        world.advance(timedelta(seconds=seconds))
        remembered, fresh = _both(world, policy, store)
        assert remembered == fresh
    assert store.looked == 0


def test_an_event_of_a_kind_that_drains_is_looked_at_in_each_pass_although_it_asks_for_nothing() -> None:
    # The pods of its node may be read ahead, and are not for a node that rests.
    world, store = _quiet_fleet(2), _Counting(PARTS)
    policy = builders.settings("events: {Freeze: {drain: true, minDuration: 10s}}")
    _pause(world, ("event", "n0", "Freeze"))
    for _ in range(3):
        plan, _ = run_pass(world.outside, policy, world.now, store)
    assert not any(event.asks for node in plan.nodes for event in node.events)
    assert store.looked == 1


def test_the_end_of_a_hold_is_a_moment_of_a_node_that_rests() -> None:
    world, policy = _quiet_fleet(2), builders.settings(WORKFLOWS)
    _pause(world, ("hold all", "n0", 30))
    for _ in range(3):
        look(world, policy)
    remembered, fresh = _both(world, policy, store_of(world))
    assert remembered.next_change == world.now + timedelta(minutes=30)
    assert remembered == fresh


def test_an_upgrade_is_seen_on_a_node_of_the_pool_that_was_not_reported() -> None:
    world = world_of(builders.node(name, pool="np", conditions=(builders.quiet(),)) for name in ("n0", "n1"))
    # There is no workflow for n1.
    policy = builders.settings(WORKFLOWS.replace("name: default", "name: first"))
    world.cluster.label("n0", keys_of(builders.PREFIX).maintenance_profile, "first")
    for _ in range(4):
        plan, _ = look(world, policy)
    assert [node.node for node in plan.nodes] == ["n0"]

    _change(world, ("upgrade", "n0", True))
    remembered, fresh = _both(world, policy, store_of(world))
    assert {node.node for node in fresh.nodes} == {"n0", "n1"}
    assert remembered == fresh


def test_what_the_drainer_remembers_of_a_node_is_not_kept_with_its_plan() -> None:
    world, policy = _quiet_fleet(1), builders.settings("uncordon: {settle: 0s}")
    for request in (builders.DRAIN_NOW, None):
        world.cluster.annotate("n0", builders.REQUEST, request)
        for _ in range(4):
            look(world, policy)
            carry_on(world)
    assert not world.cluster.nodes["n0"].unschedulable

    world.cluster.label("n0", keys_of(builders.PREFIX).ignore, "true")
    _pause(world, ("event", "n0", "Freeze"))
    plan, _ = look(world, policy)
    assert plan.nodes[0].draining.progress is not None
    remembered, fresh = _both(world, policy, store_of(world))
    assert remembered == fresh


def test_a_pass_looks_at_no_node_whose_workflows_wait_for_a_change_of_it() -> None:
    world, policy, store = _quiet_fleet(20), builders.settings(WORKFLOWS), _Counting(PARTS)
    for _ in range(4):
        run_pass(world.outside, policy, world.now, store)
    assert store.looked == 0

    world.cluster.label("n7", "example.com/reboot", "true")
    plan, _ = run_pass(world.outside, policy, world.now, store)
    assert store.looked == 1
    assert len(plan.nodes) == 20


def test_a_silent_answer_ends_a_rest_by_time_alone() -> None:
    world, policy = _quiet_fleet(3), builders.settings()
    # Kubelets are silent as well, so no node changes.
    world.api.silent_since = dict.fromkeys(world.cluster.nodes, NOW)
    store = Store(PARTS)
    _both(world, policy, store)

    world.advance(timedelta(hours=2))
    remembered, fresh = _both(world, policy, store)

    assert remembered == fresh
    assert len(fresh.nodes) == 3


def test_other_settings_wake_every_node() -> None:
    world, store = _quiet_fleet(3), Store(PARTS)
    for text in ("", "sources: {nodeConditions: {enabled: false}}", "nodeSelector: {agentpool: p1}"):
        remembered, fresh = _both(world, builders.settings(text), store)
        assert remembered == fresh


def test_another_state_of_the_agents_wakes_every_node() -> None:
    world, policy, store = _quiet_fleet(3), builders.settings(), Store(PARTS)
    for agents in (Agents(), Agents(installed=True), Agents(installed=True, problem="unreadable")):
        world.cluster.agents = agents
        remembered, fresh = _both(world, policy, store)
        assert remembered == fresh


def test_a_node_that_is_gone_counts_no_more() -> None:
    world, policy, store = _quiet_fleet(3), builders.settings(), Store(PARTS)
    world.advance(timedelta(minutes=1))
    newest = builders.node("n9", conditions=(builders.quiet(NOW + timedelta(seconds=9)),))
    world.cluster.add_node(newest)
    _both(world, policy, store)

    world.cluster.delete_node("n9")
    remembered, fresh = _both(world, policy, store)

    assert len(fresh.fleet) == 3
    assert remembered == fresh


def test_a_pass_that_fails_forgets_no_change() -> None:
    world, policy = _quiet_fleet(3), builders.settings()
    store = Store(PARTS)
    rehearse(world.outside, policy, NOW, store)
    world.cluster.annotate("n1", builders.REQUEST, builders.DRAIN_NOW)

    # What a pass does before it fails.
    store.chosen(world.api.look(LookRequest(wanted(policy, PARTS), changes=True)), NOW)
    remembered, fresh = _both(world, policy, store)

    assert [node.node for node in remembered.nodes] == ["n1"]
    assert remembered == fresh
