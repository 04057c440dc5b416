"""Hooks of a node: which step each of them holds, for how long, and what is reported of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.features.hooks.hook import IN_RECORD, HookEnd
from reconciler.model.errors import Unreachable
from reconciler.model.moments import to_text
from reconciler.model.plan import Hold, NoticeType
from reconciler.model.record import DrainRecord, State
from reconciler.model.selector import EVERYTHING
from reconciler.model.steps import HeldStep
from reconciler.model.values import replace
from reconciler.simulation.api import Call
from reconciler.simulation.clock import Actor
from reconciler.simulation.workloads import BudgetSpec
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import (
    DRAIN_NOW,
    NOW,
    PREFIX,
    REQUEST,
    case_of,
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

BACKUP = f"{PREFIX}/pre-drain.backup"
FLASH = f"{PREFIX}/post-drain.flash"
SMOKE = f"{PREFIX}/pre-uncordon.smoke"
DAY = timedelta(days=1)


def history(*hooks: str, text: str = "uncordon: {settle: 0s}", pods: int = 1) -> History:
    marks = {REQUEST: DRAIN_NOW, **dict.fromkeys(hooks, "team storage")}
    made = [builders.pod(f"web-{number}", "a") for number in range(pods)]
    return History(world_of([node(annotations=marks), node("b")], made), builders.settings(text))


def holds(going: History) -> dict[str, Hold]:
    """What holds the node in the next pass, by code."""
    plan, _ = going.look()
    return {one.code: one for node in plan.nodes if node.node == "a" for one in node.holds}


def evictions(going: History) -> int:
    return len(going.world.log.of(Actor.US, "evict"))


def events(going: History) -> list[str]:
    return [one.notice.message for one in going.cluster.events if one.notice.reason == "HookTimedOut"]


def ended(going: History) -> bool:
    return not going.cluster.nodes["a"].unschedulable


def test_a_pre_drain_hook_holds_the_first_eviction_after_the_cordon() -> None:
    going = history(BACKUP)
    held = holds(going)["preDrainHooksDone"]

    assert going.cluster.nodes["a"].unschedulable
    assert evictions(going) == 0
    assert held.until == NOW + minutes(10)
    assert held.reason == (
        "hook pre-drain.backup (team storage) holds the drain until its owner removes the annotation, "
        "until 2026-11-21T12:10:00Z at most"
    )


def test_the_drain_begins_when_the_owner_removes_the_last_annotation() -> None:
    other = f"{PREFIX}/pre-drain.sync"
    going = history(BACKUP, other)
    going.look()
    going.cluster.annotate("a", BACKUP, None)
    assert "pre-drain.sync" in holds(going)["preDrainHooksDone"].reason
    going.cluster.annotate("a", other, None)
    going.look()

    assert evictions(going) == 1
    assert events(going) == []


def test_a_hook_that_runs_out_of_time_is_reported_once_and_the_drain_begins() -> None:
    going = history(BACKUP)
    going.look()
    going.wait(minutes(10) - timedelta(seconds=1))
    going.look()
    assert (evictions(going), events(going)) == (0, [])
    going.wait(timedelta(seconds=1))
    going.until_still()

    assert evictions(going) == 1
    (said,) = events(going)
    assert said == (
        "hook pre-drain.backup has held the drain since 2026-11-21T12:00:00Z; its time limit of 10m is over, "
        "so the step goes on"
    )
    types = {one.notice.type for one in going.cluster.events if one.notice.message == said}
    assert types == {NoticeType.WARNING}


def test_a_new_process_counts_on_from_the_record() -> None:
    going = history(BACKUP)
    going.look()
    for _ in range(2):
        going.wait(minutes(5))
        going.world.restart()
        going.until_still()

    assert evictions(going) == 1


def test_a_hook_that_appears_again_has_a_time_limit_of_its_own() -> None:
    going = history(BACKUP, f"{PREFIX}/pre-drain.other")
    going.look()
    going.cluster.annotate("a", BACKUP, None)
    going.look()
    going.wait(minutes(6))
    going.cluster.annotate("a", BACKUP, "again")
    going.look()
    going.wait(minutes(6))

    held = holds(going)["preDrainHooksDone"]
    assert "pre-drain.backup (again)" in held.reason
    assert held.until == NOW + minutes(16)


def test_of_two_hooks_the_longer_one_says_until_when_and_the_other_one_when_to_look() -> None:
    going = history(BACKUP)
    going.look()
    going.wait(minutes(5))
    going.cluster.annotate("a", f"{PREFIX}/pre-drain.later", "team web")
    going.look()
    plan, _ = going.look()
    (hold,) = [one for one in plan_of(plan).holds if one.code == "preDrainHooksDone"]

    assert (hold.until, plan.next_change) == (NOW + minutes(15), NOW + minutes(10))


def test_a_hook_that_appears_during_the_drain_stops_it() -> None:
    going = history(pods=2)
    going.cluster.bare_pods_stop_after = minutes(5)
    going.look()
    going.cluster.annotate("a", BACKUP, "late")
    plan, _ = going.look()

    assert plan_of(plan).todo.stop_drain
    assert "preDrainHooksDone" in codes(plan_of(plan))


def test_an_empty_node_is_not_drained_while_a_hook_holds_the_drain() -> None:
    going = history(BACKUP, pods=0)
    going.until_still()
    going.until_still()
    drain = case_of(going.cluster.nodes["a"]).drain

    assert drain is not None
    assert drain.done is None


def test_the_time_limit_of_the_drain_begins_after_its_hooks() -> None:
    going = history(BACKUP, text="hooks: {timeout: 1h}")
    going.look()
    going.wait(minutes(45))
    going.cluster.annotate("a", BACKUP, None)
    going.look()
    case = case_of(going.cluster.nodes["a"])

    assert case.drain is not None
    assert (case.drain.attempt, case.drain.since) == (1, NOW + minutes(45))
    assert case.facts.drain_began == NOW + minutes(45)


@pytest.mark.parametrize(
    ("left", "held"), [(minutes(20), minutes(5)), (minutes(15), None), (DAY, minutes(10))]
)
def test_a_hook_never_holds_a_drain_beyond_the_latest_start(left: timedelta, held: timedelta | None) -> None:
    began = NOW - minutes(1)
    case = record(since=began, drain=DrainRecord(NOW), events=(known(ids=("A1",), not_before=NOW + left),))
    one = held_node(case, annotations={BACKUP: ""})
    readings = {"a": reported(signal(event_id="A1", not_before=NOW + left))}
    plan = plan_of(planned(snapshot(one, readings=readings, pods={"a": (builders.pod(),)})))
    until = next((hold.until for hold in plan.holds if hold.code == "preDrainHooksDone"), None)

    assert until == (NOW + held if held else None)
    assert (plan.todo.drain is None) is (held is not None)


def test_a_post_drain_hook_begins_when_the_node_is_drained_and_holds_the_uncordon() -> None:
    going = history(FLASH)
    going.until_still()
    going.wait(minutes(1))
    assert holds(going)["postDrainHooksDone"].until == NOW + minutes(10)
    going.cluster.annotate("a", REQUEST, None)
    going.until_still()
    assert not ended(going)
    going.cluster.annotate("a", FLASH, None)
    going.until_still()

    assert ended(going)


def test_a_post_drain_hook_holds_no_uncordon_if_the_event_goes_before_the_node_is_drained() -> None:
    going = history(FLASH)
    going.cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, max_unavailable=0))
    going.until_still()
    assert not ended(going)
    going.cluster.annotate("a", REQUEST, None)
    going.until_still()

    assert ended(going)


def test_a_pre_uncordon_hook_begins_only_when_nothing_else_holds_the_uncordon() -> None:
    going = history(SMOKE)
    going.until_still()
    going.wait(minutes(60))
    assert "preUncordonHooksDone" not in holds(going)
    going.cluster.annotate("a", REQUEST, None)
    held = holds(going)
    assert not ended(going)
    assert held["preUncordonHooksDone"].until == NOW + minutes(70)
    going.wait(minutes(10))
    going.until_still()

    assert ended(going)
    assert len(events(going)) == 1


def test_a_pre_uncordon_hook_begins_again_after_an_event_that_came_back() -> None:
    going = history(SMOKE)
    going.until_still()
    going.cluster.annotate("a", REQUEST, None)
    going.look()
    going.wait(minutes(9))
    going.cluster.annotate("a", REQUEST, DRAIN_NOW)
    assert "preUncordonHooksDone" not in holds(going)
    going.cluster.annotate("a", REQUEST, None)
    going.wait(minutes(9))

    assert holds(going)["preUncordonHooksDone"].until == going.now + minutes(10)


def test_an_event_that_can_not_be_sent_is_sent_by_the_next_pass_and_the_drain_does_not_wait_for_it() -> None:
    going = history(BACKUP)
    going.look()
    going.wait(minutes(10))

    def refuse(call: Call) -> None:
        if call.what == "notify":
            raise Unreachable("no answer")

    going.api.before_write = refuse
    going.look()
    assert (evictions(going), events(going)) == (1, [])
    going.api.before_write = lambda _: None
    going.until_still()

    assert len(events(going)) == 1


def test_hooks_hold_nothing_where_the_settings_give_them_no_time() -> None:
    going = history(BACKUP, text="hooks: {timeout: 0s}")
    going.look()

    assert evictions(going) == 1
    assert events(going) == []


def test_a_hook_on_a_node_without_a_case_does_nothing() -> None:
    going = history(BACKUP, FLASH, SMOKE)
    going.cluster.annotate("a", REQUEST, None)
    plan = going.until_still()

    assert [one.node for one in plan.nodes] == []
    assert builders.RECORD not in going.cluster.nodes["a"].annotations


def test_a_converged_pass_writes_nothing_while_a_hook_holds() -> None:
    going = history(BACKUP)
    plan = going.until_still()

    assert plan.next_change == NOW + minutes(10)


@pytest.mark.parametrize(("left", "held"), [(20, True), (15, False)])
def test_hooks_in_a_record_that_cannot_be_read_stay_and_hold_the_drain_until_the_latest_start(
    left: int, held: bool
) -> None:
    event = known(ids=("A1",), not_before=NOW + minutes(left))
    case = record(since=NOW - minutes(1), drain=DrainRecord(NOW), events=(event,))
    unreadable = replace(case, parts={"hooks": [{"hook": "later.backup", "since": to_text(NOW)}]})
    hooked = held_node(unreadable, annotations={BACKUP: ""})
    readings = {"a": reported(signal(event_id="A1", not_before=event.not_before))}
    plan = plan_of(planned(snapshot(hooked, readings=readings, pods={"a": (builders.pod(),)})))
    reasons = [hold.reason for hold in plan.holds if "can't be read: hooks: " in hold.reason]

    assert bool(reasons) is (plan.todo.drain is None) is held
    assert plan.record is not None
    assert plan.record.parts == unreadable.parts


def test_the_record_says_what_has_ended() -> None:
    going = history(BACKUP)
    going.look()
    going.wait(minutes(10))
    going.until_still()
    (hook,) = IN_RECORD.of(case_of(going.cluster.nodes["a"]))

    assert (hook.id.step, hook.end, hook.told) == (HeldStep.PRE_DRAIN, HookEnd.TIMED_OUT, True)
    assert case_of(going.cluster.nodes["a"]).state is State.IN_MAINTENANCE
