"""Law 8: once converged, until the plan's next moment of change, a pass writes nothing but its lock."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.model.event import Kind, Status
from reconciler.model.node import AUTOSCALER_TAINT, Taint
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.histories import History
from tests.laws.hits import Hits
from tests.laws.test_law_14_the_forecast_comes_true import TEXTS, Announced, announced, begin
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, REQUEST, minutes
from tests.support.searching import examples
from tests.support.worlds import maintenances, world_of

WROTE = Hits()


@WROTE.at_least(60)
@settings(max_examples=examples(125))
@given(strategies.worlds(), strategies.policies(), st.floats(0, 1, exclude_max=True))
def test_whatever_is_on_the_nodes_passes_come_to_rest_and_stay_so_until_the_plan_says(
    world: World, policy: Settings, part: float
) -> None:
    history = History(world, policy)
    plan = history.until_still(most=20)
    WROTE.count(bool(world.api.done))
    until = plan.next_change or NOW + timedelta(days=2)
    assert until >= NOW
    # Microseconds round: the share of a time that is nearly all of it would be the moment itself.
    world.clock.advance(max(NOW, min(NOW + (until - NOW) * part, until - timedelta.resolution)))
    orders, writes = dict(world.drainer.orders), world.api.writes
    again, outcomes = history.look()

    # A refused write is one, too: it comes again in every pass.
    assert world.api.writes == writes
    assert world.drainer.orders == orders
    assert [one.todo.notices for one in again.nodes if one.todo.notices] == []
    assert {one.action for one in outcomes} <= {"drain"}


ALIKE = Hits()


@ALIKE.at_least(50)
@settings(max_examples=examples(40))
@given(st.lists(strategies.reboots, min_size=2, max_size=3), st.none() | strategies.asking_requests)
def test_events_that_differ_in_little_are_published_once_each(
    reported: list[dict[str, str]], asked: str | None
) -> None:
    annotations = {REQUEST: asked} if asked is not None else {}
    world = world_of([builders.node("a", annotations=annotations), builders.node("b")])
    history = History(world, builders.settings("publish: [nodemaintenances]"))
    for number in range(len(reported)):
        world.cluster.annotate("a", IMDS, builders.published(*reported[: number + 1]))
        history.until_still()
    ALIKE.count(len(maintenances(world.cluster)))
    writes = world.api.writes
    history.look()

    assert world.api.writes == writes


HELD = Hits()
EARLY = (
    "budget: {maxUnavailable: 1}\nevents: {Reboot: {start: Early}, Redeploy: {start: Early}}",
    "budget: {maxUnavailable: 2, reserve: 1}\nevents: {Reboot: {start: Early}}",
)


@HELD.at_least(60)
@settings(max_examples=examples(30))
@given(
    st.lists(announced, min_size=2, max_size=6),
    st.sampled_from((*TEXTS, *EARLY)),
    st.sets(st.integers(0, 5), min_size=1, max_size=4),
    st.booleans(),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=15, max_size=15),
)
# A case that is placed for now gives way to another one, and leaves starts that are spaced from its own.
@example(
    events=[
        Announced(Kind.REBOOT, 125, 300, False),
        Announced(Kind.REBOOT, 120, 300, False),
        Announced(Kind.REBOOT, 120, 300, False),
        Announced(Kind.REDEPLOY, 150, 300, False),
        Announced(Kind.REBOOT, 65, 300, False),
    ],
    text="budget: {maxUnavailable: 3, spacing: 20m}",
    held={0},
    place_of_others=False,
    parts=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
)
def test_what_follows_from_a_start_that_is_planned_for_now_and_held_changes_when_the_plan_says(
    events: list[Announced], text: str, held: set[int], place_of_others: bool, parts: list[float]
) -> None:
    history = begin([dataclasses.replace(one, requested=True) for one in events], builders.settings(text))
    if place_of_others:
        history.cluster.cordon(f"n{len(events)}")
    for name in [f"n{number}" for number in held if number < len(events)]:
        node = history.cluster.nodes[name]
        history.cluster.put_node(replace(node, taints=(Taint(AUTOSCALER_TAINT, "", "NoSchedule"),)))
    for part in parts:
        plan = history.until_still(most=20)
        planned = [one.schedule for one in plan.nodes if one.schedule is not None]
        HELD.count(any(one.forecast_until is not None for one in planned))
        until = plan.next_change or history.now + timedelta(days=1)
        history.wait(min((until - history.now) * part, until - history.now - timedelta.resolution))
        writes = history.api.writes
        history.look()

        assert history.api.writes == writes
        history.wait(until - history.now)


def test_a_plan_without_a_start_for_now_needs_no_pass_of_its_own() -> None:
    asked = {REQUEST: f'{{"kind":"Reboot","notBefore":"{NOW + minutes(360):%Y-%m-%dT%H:%M:%SZ}"}}'}
    history = History(world_of([builders.node("a", annotations=asked)]), builders.settings())

    # An hour before the latest start.
    assert history.until_still().next_change == NOW + minutes(285)


def test_the_time_out_of_a_stuck_drain_is_a_moment_of_change() -> None:
    # Later than the time out, it would be called stuck.
    going = builders.pod("web", "a", deleting_until=NOW + minutes(25))
    history = History(
        world_of([builders.node("a", annotations={REQUEST: builders.DRAIN_NOW})], [going]),
        builders.settings(),
    )

    # From then on the pod is late, and a pass records since when none leaves.
    late = NOW + minutes(25) + timedelta(seconds=10)
    assert history.until_still().next_change == late
    history.world.clock.advance(late)
    assert history.until_still().next_change == NOW + minutes(30)


def test_a_node_that_settles_keeps_the_moment_at_which_its_events_were_gone() -> None:
    settling = builders.held_node(builders.record(quiet_since=NOW - minutes(1)))
    plan = builders.planned(builders.snapshot(settling, builders.node("b")))

    assert builders.plan_of(plan).todo.write is None
    # The settle time of two minutes does not begin again.
    assert plan.next_change == NOW + minutes(1)


def test_the_moment_at_which_a_heartbeat_is_too_old_is_a_moment_of_change() -> None:
    detector = "condition:VMEventScheduled"
    held = builders.held_node(builders.record(events=(builders.known(sources=(detector,)),)))
    going_on = builders.signal(source=detector, status=Status.STARTED)
    readings = {"a": (builders.reading(going_on, as_of=NOW - minutes(4)),)}
    plan = builders.planned(builders.snapshot(held, builders.node("b"), readings=readings))

    # A heartbeat of exactly 15 minutes ago still counts.
    assert plan.next_change == NOW + minutes(11) + timedelta.resolution


def test_the_moment_at_which_a_lost_node_gives_its_place_back_is_a_moment_of_change() -> None:
    lost = builders.node("b", ready=False, ready_since=NOW - minutes(10))
    waiting = builders.node("a", annotations={REQUEST: builders.DRAIN_NOW})
    history = History(world_of([waiting, lost]), builders.settings("budget: {maxUnavailable: 1}"))

    assert history.until_still().next_change == NOW + minutes(20)


def test_the_moment_at_which_a_lost_node_that_waits_needs_a_place_of_its_own_is_a_moment_of_change() -> None:
    asked = {REQUEST: builders.DRAIN_NOW}
    lost = builders.node("a", annotations=asked, ready=False, ready_since=NOW - minutes(10))
    policy = builders.settings('windows: [{name: night, start: "22:00", end: "23:00"}]')

    assert History(world_of([lost]), policy).until_still().next_change == NOW + minutes(20)
