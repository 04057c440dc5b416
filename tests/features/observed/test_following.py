"""What would have become of announced maintenance: followed over passes in mode Observe."""

from __future__ import annotations

from reconciler.features.observed.cases import Fate
from reconciler.features.observed.following import Following
from reconciler.model.event import Kind
from reconciler.simulation.platform import VmEvent
from tests.features.observed.scene import LEDGER, NEVER, POOL, Observing
from tests.support import builders
from tests.support.builders import DRAIN_NOW, minutes

ONE = "budget: {maxUnavailable: 1}"


def test_a_node_that_would_be_drained_in_time_says_when_and_what_the_platform_met() -> None:
    observing = Observing()
    began = observing.world.now
    observing.announces(0, in_minutes=30)
    observing.passes()
    observing.goes_on(45)

    (case,) = observing.cases
    assert (case.fate, case.begins, case.late) == (Fate.IN_TIME, began, "")
    assert case.date == began + minutes(30)
    assert case.struck == began + minutes(30)
    assert (case.pods, case.kind) == (2, "Reboot")
    assert case.over is not None
    assert observing.following.open == {}


def test_pods_that_a_budget_never_lets_go_would_have_blocked_it() -> None:
    observing = Observing(nodes=1, workloads=(LEDGER,))
    observing.world.cluster.add_budget(NEVER)
    observing.announces(0, in_minutes=30)
    observing.passes()
    observing.goes_on(40)

    (case,) = observing.cases
    assert (case.fate, case.stays) == (Fate.BLOCKED, ("PDB shop/ledger",))
    assert "shop/ledger" in case.why


def test_a_drain_that_is_free_of_its_obstacle_in_time_would_have_ended() -> None:
    observing = Observing(nodes=1, workloads=(LEDGER,))
    observing.world.cluster.add_budget(NEVER)
    observing.announces(0, in_minutes=30)
    observing.passes()
    observing.goes_on(5)
    assert observing.cases[0].fate is Fate.BLOCKED
    observing.world.cluster.drop_budget("shop/ledger")
    observing.goes_on(1)
    # What comes after the drain would have ended is no matter of it.
    observing.world.cluster.add_budget(NEVER)
    observing.goes_on(40)

    (case,) = observing.cases
    assert (case.fate, case.stays) == (Fate.IN_TIME, ())


def test_without_a_window_before_its_date_it_would_have_been_missed() -> None:
    never = 'windows: [{name: night, start: "22:00", end: "05:00"}]\nevents: {Reboot: {outsideWindow: Never}}'
    observing = Observing(never)
    observing.announces(0, in_minutes=30)
    observing.passes()
    observing.goes_on(40)

    (case,) = observing.cases
    assert (case.fate, case.late, case.begun) == (Fate.MISSED, "no window before the deadline", False)
    assert case.because


def test_a_node_for_which_the_budget_has_no_place_in_time_would_have_been_missed() -> None:
    observing = Observing(ONE)
    observing.announces(0, 1, in_minutes=30)
    observing.passes()
    observing.goes_on(40)

    first, second = observing.cases
    assert (first.fate, second.fate) == (Fate.IN_TIME, Fate.MISSED)
    assert second.late == "no place of maxUnavailable"


def test_a_node_gets_its_turn_after_the_one_before_it() -> None:
    observing = Observing(ONE)
    observing.announces(0, in_minutes=20)
    later = observing.announces(1, in_minutes=60)[0]
    observing.passes()
    observing.goes_on(90)

    first, second = observing.cases
    assert (first.fate, second.fate) == (Fate.IN_TIME, Fate.IN_TIME)
    assert first.struck is not None
    assert second.begins is not None
    assert first.struck <= second.begins < later.not_before


def test_starts_that_keep_a_distance_do_not_wait_for_drains_that_nobody_makes() -> None:
    observing = Observing("budget: {maxUnavailable: 3, spacing: 10m}")
    observing.announces(0, 1, 2, in_minutes=120)
    schedules = {node.node: node.schedule for node in observing.passes().nodes}
    observing.goes_on(130)

    starts = {name: one.planned_start for name, one in schedules.items() if one is not None}
    assert {case.node: case.begins for case in observing.cases} == starts
    first, *_, last = sorted(start for start in starts.values() if start is not None)
    assert last - first == minutes(20)
    assert {case.fate for case in observing.cases} == {Fate.IN_TIME}


def test_what_is_called_off_before_its_drain_is_no_miss() -> None:
    closed = 'windows: [{name: night, start: "22:00", end: "05:00"}]'
    observing = Observing(closed)
    (event,) = observing.announces(0, in_minutes=120)
    observing.passes()
    assert observing.cases[0].fate is Fate.AHEAD
    observing.world.platform.cancel(event)
    observing.goes_on(3)

    (case,) = observing.cases
    assert (case.fate, case.struck) == (Fate.CALLED_OFF, None)


def test_what_has_started_when_it_is_first_seen_came_too_late() -> None:
    observing = Observing()
    name, now = POOL.node(0).name, observing.world.now
    observing.world.platform.strike(VmEvent(name, Kind.REDEPLOY, now, starts=now, lasts=minutes(5)))
    observing.passes()
    observing.goes_on(10)

    (case,) = observing.cases
    assert (case.fate, case.late) == (Fate.MISSED, "announced too late")


def test_a_source_that_is_silent_ends_no_case() -> None:
    observing = Observing()
    observing.announces(0, in_minutes=600)
    observing.passes()
    silent = builders.condition("VMEventScheduled", "Unknown", at=observing.world.now)
    observing.world.cluster.set_condition(POOL.node(0).name, silent)
    plan = observing.passes()

    assert plan.nodes[0].silent
    assert observing.cases[0].over is None
    assert list(observing.following.open) == [POOL.node(0).name]


def test_a_node_that_is_gone_ends_its_case() -> None:
    observing = Observing()
    observing.announces(0, kind=Kind.PREEMPT, in_minutes=1)
    observing.passes()
    observing.goes_on(10)

    (case,) = observing.cases
    assert (case.fate, case.over is not None, case.struck is not None) == (Fate.IN_TIME, True, True)


def test_nothing_is_said_of_a_case_while_its_start_only_moves_with_the_clock() -> None:
    observing = Observing(ONE)
    for instance in (0, 1):
        observing.world.cluster.annotate(POOL.node(instance).name, "node-maintenance.dev/request", DRAIN_NOW)
    planned = [node.schedule.planned_start for node in observing.passes().nodes if node.schedule]
    before = len(observing.said)
    observing.world.advance(minutes(5))
    later = [node.schedule.planned_start for node in observing.passes().nodes if node.schedule]

    assert before == 2
    assert planned[1] is not None
    assert later[1] == planned[1] + minutes(5)
    assert observing.said[before:] == []


def test_a_next_process_goes_on_with_the_open_cases() -> None:
    observing = Observing()
    observing.announces(0, in_minutes=30)
    observing.passes()
    observing.goes_on(10)
    observing.following = Following(observing.cases)
    observing.goes_on(40)

    (case,) = observing.cases
    assert (case.fate, case.over is not None) == (Fate.IN_TIME, True)
