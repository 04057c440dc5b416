"""Times of ours in the future, of a clock that was ahead: they count as now, and are corrected once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.record import Asked, CaseRecord, DrainRecord
from reconciler.model.snapshot import Ledger, Replaced
from reconciler.model.values import replace
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import IMDS, NOW, REQUEST, minutes, node
from tests.support.worlds import carry_on, look, world_of

DAY = timedelta(days=1)
LATER = NOW + DAY
SPACED = builders.settings("budget: {maxUnavailable: 100%, spacing: 10m}")


def until(world: World, ended: str) -> float:
    """Run a pass a minute, and return after how many minutes the node is uncordoned."""
    for minute in range(20):
        look(world, builders.settings())
        carry_on(world)
        if not world.cluster.nodes[ended].unschedulable:
            return minute
        world.advance(minutes(1))
    return float("inf")


def over(case: CaseRecord) -> World:
    """A world with a drained node whose event is gone."""
    quiet = {IMDS: builders.published(vm=builders.vm_name(0))}
    held = builders.held_node(case, "a", annotations=quiet, unschedulable=True)
    return world_of([builders.on_vm(held, 0), node("b")])


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(builders.record(quiet_since=LATER), id="quietSince"),
        pytest.param(builders.record(since=LATER, quiet_since=LATER), id="since"),
        pytest.param(
            builders.record(quiet_since=LATER, drain=DrainRecord(LATER, 1, LATER)), id="the drain's times"
        ),
    ],
)
def test_a_node_is_uncordoned_after_the_settle_time_and_not_a_day_later(case: CaseRecord) -> None:
    assert until(over(case), "a") == 2


def test_an_unfinished_drain_times_out_by_the_clock_of_now() -> None:
    drain = DrainRecord(LATER, 1)
    asking = {REQUEST: builders.DRAIN_NOW}
    world = world_of(
        [builders.held_node(builders.record(drain=drain), "a", annotations=asking, unschedulable=True)]
    )
    look(world, builders.settings())
    found = builders.case_of(world.cluster.nodes["a"]).drain

    assert found is not None
    assert (found.since, found.attempt) == (NOW, 1)


def test_the_record_is_corrected_once_and_the_report_says_why() -> None:
    world = over(builders.record(quiet_since=LATER))
    first, _ = look(world, builders.settings())
    second, _ = look(world, builders.settings())

    ahead = "a clock was ahead: times in the future in the records of 1 node (a) count as now"
    assert ahead in first.notes
    assert ahead not in second.notes
    assert builders.case_of(world.cluster.nodes["a"]).quiet_since == NOW
    assert [one.todo.write for one in second.nodes if one.todo.write is not None] == []


def test_a_warning_does_not_wait_for_a_moment_that_such_a_clock_wrote() -> None:
    asked = {REQUEST: f'{{"kind":"Reboot","notBefore":"{NOW + 3 * DAY:%Y-%m-%dT%H:%M:%SZ}"}}'}
    world = world_of([node(name, annotations=asked) for name in ("a", "b")])
    policy = builders.settings("budget: {maxUnavailable: 1}")
    look(world, policy, LATER)
    assert world.cluster.events == []
    look(world, policy)
    look(world, policy)

    assert [(one.node, one.notice.reason) for one in world.cluster.events] == [
        ("b", "MaintenanceWillBeMissed")
    ]


def test_a_last_start_in_the_future_holds_starts_for_one_spacing() -> None:
    world = world_of([node("a", annotations={REQUEST: builders.DRAIN_NOW}), node("b")])
    world.cluster.ledger = Ledger(LATER)
    started = []
    for minute in range(15):
        plan, _ = look(world, SPACED)
        started += [minute for one in plan.nodes if one.starts]
        carry_on(world)
        world.advance(minutes(1))

    assert started == [10]
    assert world.cluster.ledger == Ledger(NOW + minutes(10))


def test_a_replaced_node_of_the_future_holds_its_place_no_longer_than_any() -> None:
    world = world_of([node("a", annotations={REQUEST: builders.DRAIN_NOW}), node("b")])
    world.cluster.ledger = Ledger(replaced=(Replaced("x", "uid-x", "", "np", 1, LATER),))
    one = builders.settings("budget: {maxUnavailable: 1}")
    look(world, one)
    world.advance(minutes(31))
    plan, _ = look(world, one)

    assert builders.plan_of(plan).starts


def test_a_clock_that_differs_by_seconds_changes_nothing() -> None:
    world = over(builders.record(quiet_since=NOW + timedelta(seconds=20)))
    plan, _ = look(world, builders.settings())

    assert [one.todo.write for one in plan.nodes if one.todo.write is not None] == []


def test_while_our_own_clock_is_behind_its_future_times_are_believed() -> None:
    case = replace(builders.record(quiet_since=LATER), asked=(Asked("toy", LATER),))
    world = over(case)
    world.cluster.skew = -DAY
    plan, _ = look(world, builders.settings())

    assert [one.todo.write for one in plan.nodes if one.todo.write is not None] == []
    assert builders.case_of(world.cluster.nodes["a"]).quiet_since == LATER
