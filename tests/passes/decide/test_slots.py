"""Which drains get a slot (`drain.maxConcurrentNodes`), and when our own node is drained."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.model.drains import DrainProgress, Phase, SlotUse
from reconciler.model.event import Kind, Status
from reconciler.model.node import Node
from reconciler.model.plan import Plan
from reconciler.model.record import DrainRecord
from reconciler.model.selector import LabelSelector
from reconciler.model.snapshot import Snapshot
from reconciler.model.values import replace
from reconciler.passes.decide.draining import HEAD_START, STUCK_AFTER
from reconciler.simulation.workloads import BudgetSpec
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import (
    DRAIN_NOW,
    NOW,
    REQUEST,
    codes,
    held_node,
    known,
    minutes,
    node,
    plan_of,
    planned,
    record,
    reported,
    signal,
    snapshot,
)
from tests.support.worlds import world_of

FAR = NOW + timedelta(hours=3)
LEAD = minutes(15)
"""The lead time of a reboot."""
ONE = builders.settings("drain: {maxConcurrentNodes: 1}")


def _draining(name: str, *, since: timedelta = minutes(10), attempt: int = 1) -> Node:
    began = DrainRecord(NOW - since, attempt)
    return held_node(record(drain=began, events=(known(ids=("A1",)),)), name)


def _running(
    name: str, *, blocked: timedelta | None = None, slot: bool = False, waits_for_slot: bool = False
) -> DrainProgress:
    use = SlotUse(slot, waits_for_slot, None if blocked is None else NOW - blocked)
    return DrainProgress(name, f"uid-{name}", Phase.RUNNING, slot=use)


def _snapshot(*nodes: Node, drains: tuple[DrainProgress, ...] = (), own: str | None = None) -> Snapshot:
    return snapshot(
        *nodes,
        readings={one.name: reported(signal(event_id="A1", not_before=FAR)) for one in nodes},
        pods={one.name: (builders.pod("web", one.name),) for one in nodes},
        drains={one.node: one for one in drains},
        own_node=own,
    )


def _ordered(plan: Plan) -> list[str]:
    return [one.node for one in plan.nodes if one.todo.drain is not None]


def test_a_blocked_drain_goes_on_and_leaves_its_slot_to_the_next() -> None:
    plan = planned(
        _snapshot(_draining("a"), _draining("b"), drains=(_running("a", blocked=minutes(1)),)), ONE
    )

    assert _ordered(plan) == ["a", "b"]


def test_a_drain_that_holds_a_slot_is_not_stopped_for_one_that_would_begin() -> None:
    plan = planned(_snapshot(_draining("a"), _draining("b"), drains=(_running("b", slot=True),)), ONE)

    assert _ordered(plan) == ["b"]
    assert codes(plan_of(plan, "a")) == {"drainSlot"}


def test_a_drain_that_could_go_on_without_its_slot_says_so() -> None:
    waiting = _running("a", blocked=minutes(1), waits_for_slot=True)
    plan = planned(_snapshot(_draining("a"), _draining("b"), drains=(waiting, _running("b", slot=True))), ONE)

    assert _ordered(plan) == ["a", "b"]
    assert codes(plan_of(plan, "a")) == {"drainSlot"}


def test_of_two_drains_that_are_as_urgent_the_first_by_name_gets_the_slot_however_they_are_listed() -> None:
    assert _ordered(planned(_snapshot(_draining("b"), _draining("a")), ONE)) == ["a"]


def test_a_lower_limit_stops_the_drains_beyond_it() -> None:
    plan = planned(
        _snapshot(
            _draining("a"), _draining("b"), drains=(_running("a", slot=True), _running("b", slot=True))
        ),
        ONE,
    )

    assert _ordered(plan) == ["a"]
    assert plan_of(plan, "b").todo.stop_drain


@pytest.mark.parametrize(
    ("kind", "not_before"), [(Kind.PREEMPT, None), (Kind.TERMINATE, None), (Kind.PREEMPT, NOW + minutes(8))]
)
def test_what_is_lost_anyway_needs_no_slot(kind: Kind, not_before: datetime | None) -> None:
    held = held_node(
        record(drain=DrainRecord(NOW), events=(known(kind, not_before=not_before, ids=("T1",)),)), "b"
    )
    seen = _snapshot(_draining("a"), held, drains=(_running("a", slot=True),))
    readings = {**seen.readings, "b": reported(signal(kind, event_id="T1", not_before=not_before))}
    plan = planned(replace(seen, readings=readings), ONE)

    assert sorted(_ordered(plan)) == ["a", "b"]
    order = plan_of(plan, "b").todo.drain
    assert order is not None
    assert order.slots is None


def test_a_termination_that_is_two_weeks_ahead_needs_a_slot() -> None:
    far = NOW + timedelta(days=14)
    held = held_node(record(drain=DrainRecord(NOW), events=(known(Kind.TERMINATE, ids=("T1",)),)), "b")
    seen = _snapshot(_draining("a"), held, drains=(_running("a", slot=True),))
    readings = {**seen.readings, "b": reported(signal(Kind.TERMINATE, event_id="T1", not_before=far))}
    plan = planned(replace(seen, readings=readings), ONE)

    assert _ordered(plan) == ["a"]


def test_a_drain_that_has_timed_out_begins_again_after_those_that_have_not_begun() -> None:
    plan = planned(_snapshot(_draining("a", attempt=2), _draining("b")), ONE)

    assert _ordered(plan) == ["b"]
    assert codes(plan_of(plan, "a")) == {"drainSlot"}


def test_our_own_node_is_decided_on_last_even_if_others_have_more_attempts() -> None:
    goes_on = _running("b", slot=True)
    plan = planned(_snapshot(_draining("a"), _draining("b", attempt=2), drains=(goes_on,), own="a"))

    assert _ordered(plan) == ["b"]


def test_ten_blocked_drains_do_not_keep_the_others_from_theirs() -> None:
    names = [f"n{number:02}" for number in range(13)]
    nodes = [node(name, annotations={REQUEST: DRAIN_NOW}) for name in names]
    pods = [builders.pod(f"web-{name}", name) for name in names]
    pods = [replace(one, labels={"app": one.name}) for one in pods]
    world = world_of(nodes, pods)
    for name in names[:10]:
        selector = LabelSelector.of({"app": f"web-{name}"})
        world.cluster.add_budget(BudgetSpec("shop", f"web-{name}", selector, max_unavailable=0))
    history = History(world, builders.settings("budget: {maxUnavailable: 13}"))
    history.look()
    history.wait(minutes(1))
    history.look()
    history.wait(minutes(1))

    assert [name for name in names[10:] if history.cluster.pods_on(name)] == []
    assert all(history.cluster.pods_on(name) for name in names[:10])


@pytest.mark.parametrize(
    ("other", "attempt", "drained"),
    [
        (_running("b"), 1, False),
        (_running("b", blocked=STUCK_AFTER), 1, True),
        (_running("b", blocked=minutes(1)), 1, False),
        (_running("b", blocked=STUCK_AFTER, waits_for_slot=True), 1, False),
        (_running("b", blocked=minutes(1)), 2, True),
        (_running("b"), 2, False),
        (None, 2, True),
    ],
)
def test_our_own_node_waits_for_drains_that_are_not_stuck(
    other: DrainProgress | None, attempt: int, drained: bool
) -> None:
    drains = () if other is None else (other,)
    plan = planned(_snapshot(_draining("a"), _draining("b", attempt=attempt), drains=drains, own="a"))

    assert ("a" in _ordered(plan)) is drained
    assert ("othersFirst" in codes(plan_of(plan))) is not drained


def test_our_own_node_waits_for_a_drain_that_has_no_slot_yet() -> None:
    stuck = _running("c", slot=True, blocked=STUCK_AFTER)
    plan = planned(_snapshot(_draining("a"), _draining("b"), _draining("c"), drains=(stuck,), own="a"), ONE)

    assert codes(plan_of(plan, "b")) == {"drainSlot"}
    assert codes(plan_of(plan, "a")) == {"othersFirst"}


def test_the_moment_at_which_a_slot_may_become_free_is_a_moment_of_change() -> None:
    free_at = NOW + timedelta(seconds=40)
    leaving = replace(_running("a"), slot=SlotUse(held=True, blocked_at=free_at))
    plan = planned(_snapshot(_draining("a"), _draining("b"), drains=(leaving,)), ONE)

    assert plan.next_change == free_at


def test_the_moment_at_which_a_drain_is_stuck_is_a_moment_of_change_for_our_own_node() -> None:
    blocked = _running("b", blocked=minutes(1))
    plan = planned(_snapshot(_draining("a"), _draining("b"), drains=(blocked,), own="a"))

    assert plan.next_change == NOW - minutes(1) + STUCK_AFTER


def test_a_stuck_pod_holds_the_other_drains_until_it_is_late() -> None:
    going = replace(builders.pod("web", "a"), deleting_until=NOW)
    nodes = [node(name, annotations={REQUEST: DRAIN_NOW}) for name in "ab"]
    history = History(
        world_of(nodes, [going, builders.pod("shop", "b")]),
        builders.settings("drain: {maxConcurrentNodes: 1}\nbudget: {maxUnavailable: 2}"),
    )
    plan = history.until_still()
    assert plan.next_change is not None
    history.wait(plan.next_change - history.now)
    history.until_still()

    assert history.cluster.pods_on("b") == ()


def test_the_deadline_of_our_own_node_is_a_moment_of_change() -> None:
    seen = _snapshot(_draining("a"), _draining("b"), drains=(_running("b"),), own="a")
    not_before = NOW + minutes(40)

    assert plan_of(_own(seen, not_before=not_before)).holds[0].until == not_before - LEAD


def _own(plan_for: Snapshot, **event: object) -> Plan:
    readings = {**plan_for.readings, "a": reported(signal(event_id="A1", **event))}  # type: ignore[arg-type]
    return planned(replace(plan_for, readings=readings))


def test_our_own_node_is_drained_at_its_deadline() -> None:
    seen = _snapshot(_draining("a"), _draining("b"), drains=(_running("b"),), own="a")

    assert "a" in _ordered(_own(seen, not_before=NOW + minutes(5)))
    assert "a" not in _ordered(_own(seen, not_before=NOW + minutes(20)))


def test_others_that_begin_at_our_own_deadline_get_a_head_start() -> None:
    seen = _snapshot(_draining("a"), _draining("b", since=timedelta()), own="a")
    plan = _own(seen, not_before=NOW + minutes(5))

    assert "a" not in _ordered(plan)
    assert plan.next_change == NOW + HEAD_START


@pytest.mark.parametrize(
    "event",
    [
        {"status": Status.STARTED},
        {"kind": Kind.PREEMPT, "not_before": None},
        {"kind": Kind.PREEMPT, "not_before": NOW + minutes(8)},
    ],
)
def test_a_node_of_ours_that_may_go_now_gives_no_head_start(event: dict[str, object]) -> None:
    seen = _snapshot(_draining("a"), _draining("b", since=timedelta()), own="a")

    assert "a" in _ordered(_own(seen, **event))


def test_the_deadline_of_our_own_node_waits_for_no_slot() -> None:
    seen = _snapshot(_draining("a"), _draining("b"), drains=(_running("b", slot=True),), own="a")
    readings = {**seen.readings, "a": reported(signal(event_id="A1", not_before=NOW + minutes(5)))}

    assert _ordered(planned(replace(seen, readings=readings), ONE)) == ["b", "a"]


def test_a_drain_that_the_autoscaler_ends_holds_our_own_node_no_more() -> None:
    other = replace(_draining("b"), taints=builders.node(taints=("ToBeDeletedByClusterAutoscaler",)).taints)
    plan = planned(_snapshot(_draining("a"), other, own="a"))

    assert _ordered(plan) == ["a"]
