"""The outcome of a case is a fact, and a bad one is reported once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model import limits
from reconciler.model.errors import Unreachable
from reconciler.model.event import Kind, Status
from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.keys import DEFAULT_PREFIX, keys_of
from reconciler.model.outcome import Result
from reconciler.model.plan import NodePlan, NoticeType
from reconciler.model.pod import Pod
from reconciler.model.record import CaseFacts, PlatformStart, State
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.store import KubernetesEvent
from reconciler.simulation.workloads import BudgetSpec
from tests.laws.histories import History
from tests.passes.decide.test_history import Kept
from tests.support import builders
from tests.support.builders import IMDS, NOW, REQUEST, minutes, node, pod, published
from tests.support.strategies import rfc1123
from tests.support.worlds import world_of

ONE = "budget: {maxUnavailable: 1}"
CLOSED = 'events: {Reboot: {outsideWindow: Never}}\nwindows: [{start: "22:00", end: "23:00"}]'
WARNINGS = ("MaintenanceDeadlinePassed", "MaintenanceMissed")


def announced(kind: Kind = Kind.REBOOT, *, minutes_ahead: float = 20, id_: str = "A1") -> str:
    date = rfc1123(NOW + minutes(minutes_ahead))
    return published(
        {"EventId": id_, "EventType": kind, "EventStatus": "Scheduled", "NotBefore": date}, vm="vm"
    )


def begun(kind: Kind = Kind.REBOOT, *, id_: str = "A1") -> str:
    return published({"EventId": id_, "EventType": kind, "EventStatus": "Started", "NotBefore": ""}, vm="vm")


def history(text: str = ONE, *, mode: str = "Enforce", pods: tuple[Pod, ...] | None = None) -> History:
    """Nodes a and b; b is down, so a budget of one place holds a."""
    nodes = [node("a"), node("b", ready=False, ready_since=NOW - minutes(1))]
    on_a = (pod("web-1"), pod("web-2")) if pods is None else pods
    return History(world_of(nodes, on_a), builders.settings(text, mode=mode))


def say(scene: History, text: str | None) -> None:
    scene.cluster.annotate("a", IMDS, text)


def look(scene: History, wait: float = 1) -> NodePlan:
    """Run a pass, and return node a's plan, an empty one if there is nothing to report."""
    plan, _ = scene.look()
    scene.wait(minutes(wait))
    nothing = NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL)
    return next((one for one in plan.nodes if one.node == "a"), nothing)


def result(plan: NodePlan) -> str:
    assert plan.outcome is not None
    return plan.outcome.result.value


def told(scene: History, *reasons: str) -> list[KubernetesEvent]:
    return [one for one in scene.cluster.events if one.notice.reason in (reasons or WARNINGS)]


def test_a_node_that_the_budget_held_is_missed_and_both_warnings_come_once() -> None:
    scene = history("budget: {maxUnavailable: 1, ignore: {notReadyFor: 10h}}")
    say(scene, announced())
    assert result(look(scene, 6)) == "running"
    look(scene, 0)  # The latest start, 15 minutes before the date, has passed.
    (passed,) = told(scene)
    assert passed.notice.reason == "MaintenanceDeadlinePassed"
    assert passed.notice.type is NoticeType.WARNING
    assert "the latest start has passed, and no drain has begun: " in passed.notice.message
    assert "budgetLeft: maxUnavailable is 1, taken by b (NotReady)" in passed.notice.message
    look(scene, 15)
    say(scene, begun())
    plan = look(scene)
    assert result(plan) == "missed"
    assert plan.outcome is not None
    assert plan.outcome.pods == 2
    for _ in range(3):
        assert result(look(scene)) == "missed"
    _, missed = told(scene)
    assert missed.notice.reason == "MaintenanceMissed"
    assert (
        "2 pods that had to be evicted were on the node: shop/web-1 (ReplicaSet shop/"
        in missed.notice.message
    )
    assert missed.notice.message.endswith("; the latest start has passed, and no drain has begun")
    say(scene, published(vm="vm"))
    last = look(scene, 3)

    assert result(last) == "missed"
    look(scene)
    assert look(scene).outcome is None
    assert len(told(scene)) == 2


def test_an_event_that_is_announced_after_its_latest_start_was_announced_too_late() -> None:
    scene = history("budget: {maxUnavailable: 1, ignore: {notReadyFor: 10h}}")
    say(scene, announced(minutes_ahead=4))
    look(scene)
    plan = look(scene)

    (passed,) = told(scene)
    assert (
        "Reboot (not before 2026-11-21T12:04:00Z): it was announced too late, and no drain has begun: "
        in passed.notice.message
    )
    assert plan.outcome is not None
    assert plan.outcome.words == "running; announced too late (seen at 2026-11-21T12:00:00Z)"


def test_a_start_is_recorded_once_and_then_nothing_is_written() -> None:
    scene = history(CLOSED)
    say(scene, begun())
    look(scene)
    writes = scene.api.writes
    look(scene)
    look(scene)

    assert len(builders.case_of(scene.cluster.nodes["a"]).facts.starts) == 1
    assert scene.api.writes == writes


@pytest.mark.parametrize("held", [False, True], ids=["until its window", "by a person"])
def test_what_the_platform_has_started_is_missed_and_no_forecast_nor_a_passed_deadline(held: bool) -> None:
    scene = history(CLOSED)
    say(scene, begun())
    if held:
        scene.cluster.annotate("a", keys_of(DEFAULT_PREFIX).hold, hold_text(PersonHold(Word("alice", NOW))))
    look(scene)
    look(scene)

    found = told(scene, "MaintenanceWillBeMissed", *WARNINGS)
    assert [one.notice.reason for one in found] == ["MaintenanceMissed"]


def test_the_first_start_of_a_case_is_kept_among_the_latest() -> None:
    starts = tuple(
        PlatformStart(builders.known(ids=(f"A{number}",)), NOW - minutes(300 - number), 1)
        for number in range(limits.EVENTS)
    )
    held = replace(builders.record(events=(builders.known(ids=("B1",)),)), facts=CaseFacts(starts=starts))
    begins = builders.reported(builders.signal(event_id="B1", status=Status.STARTED))
    plan = builders.planned(builders.snapshot(builders.held_node(held), readings={"a": begins}))
    (found,) = [one.record for one in plan.nodes]

    assert found is not None
    assert [one.event.ids for one in found.facts.starts] == [
        ("A0",),
        *((f"A{number}",) for number in range(2, limits.EVENTS)),
        ("B1",),
    ]


def test_a_drain_that_a_killed_process_finished_has_begun() -> None:
    scene = history("budget: {maxUnavailable: 100%}")
    say(scene, announced(minutes_ahead=10))
    look(scene)
    scene.world.restart()
    assert result(look(scene)) == "drained"

    assert told(scene) == []


def test_a_drain_that_a_person_has_stopped_has_begun_for_a_new_process_too() -> None:
    scene = history("budget: {maxUnavailable: 100%}", pods=(pod("stuck", deleting_until=NOW),))
    scene.cluster.finalizers.add("uid-shop-stuck")
    say(scene, announced())
    look(scene)
    hold = PersonHold(Word("alice@laptop", scene.now), stops=True)
    scene.cluster.annotate("a", f"{builders.PREFIX}/hold", hold_text(hold))
    scene.world.restart()
    look(scene, 10)
    assert result(look(scene)) == "running"

    assert told(scene) == []


def test_what_a_mode_holds_is_told_as_well_and_leaves_nothing_behind() -> None:
    scene = history("", mode="Finish")
    say(scene, announced(minutes_ahead=10))
    look(scene)
    (passed,) = told(scene)
    assert "startsAllowed: mode is Finish" in passed.notice.message
    say(scene, begun())
    assert result(look(scene)) == "missed"
    look(scene)
    say(scene, published(vm="vm"))
    look(scene)
    look(scene)

    assert [one.notice.reason for one in told(scene)] == list(WARNINGS)
    assert builders.RECORD not in scene.cluster.nodes["a"].annotations
    assert builders.STATE not in scene.cluster.nodes["a"].labels


def test_a_kind_with_seconds_of_notice_is_reported_before_its_date() -> None:
    scene = history("", mode="Finish")
    say(scene, announced(Kind.PREEMPT, minutes_ahead=20))
    look(scene)
    assert told(scene) == []
    plan, _ = scene.look()
    assert plan.next_change == NOW + minutes(5)
    scene.wait(minutes(4))
    look(scene)

    (passed,) = told(scene)
    assert passed.notice.reason == "MaintenanceDeadlinePassed"


def test_a_drain_that_a_budget_blocks_is_missed_and_its_end_is_a_warning() -> None:
    scene = history("budget: {maxUnavailable: 100%}", pods=(pod("stuck", deleting_until=NOW),))
    scene.cluster.finalizers.add("uid-shop-stuck")
    say(scene, announced())
    look(scene)
    say(scene, begun())
    assert result(look(scene)) == "missed"
    scene.cluster.finalizers.clear()
    scene.cluster.drop_pod("uid-shop-stuck")
    look(scene)
    assert result(look(scene)) == "missed"
    say(scene, published(vm="vm"))
    for _ in range(3):
        look(scene, 3)
    (done,) = told(scene, "MaintenanceDone")

    assert done.notice.type is NoticeType.WARNING
    assert "missed: the platform started at " in done.notice.message
    assert len(told(scene, "MaintenanceMissed")) == 1


@pytest.mark.parametrize(
    ("steps", "expected", "words"),
    [
        pytest.param((announced(), begun()), "drained", "in time: drained at ", id="drained in time"),
        pytest.param((announced(),), "cancelled", "cancelled: the event did not start", id="cancelled"),
    ],
)
def test_the_end_of_a_case_says_what_happened(steps: tuple[str, ...], expected: str, words: str) -> None:
    scene = history("budget: {maxUnavailable: 100%}")
    for step in steps:
        say(scene, step)
        look(scene)
        look(scene)
    say(scene, published(vm="vm"))
    ended = results(scene)
    (done,) = told(scene, "MaintenanceDone")

    assert ended == {expected}
    assert done.notice.type is NoticeType.NORMAL
    assert words in done.notice.message
    assert told(scene) == []


def results(scene: History) -> set[str]:
    """The outcomes that the passes until the end of the case report."""
    return {plan.outcome.result.value for _ in range(4) if (plan := look(scene, 2)).outcome}


def test_a_drain_that_ends_after_the_date_is_late() -> None:
    scene = history("budget: {maxUnavailable: 100%}", pods=(pod("stuck", deleting_until=NOW),))
    scene.cluster.finalizers.add("uid-shop-stuck")
    say(scene, announced(minutes_ahead=2))
    look(scene, 3)
    assert result(look(scene)) == "running"
    scene.cluster.finalizers.clear()
    scene.cluster.drop_pod("uid-shop-stuck")
    look(scene)

    assert result(look(scene)) == "late"


def test_pods_that_could_not_be_counted_at_the_start_were_not_gone_because_a_drain_moves_them_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = history("budget: {maxUnavailable: 100%}", pods=(pod("stuck", deleting_until=NOW),))
    scene.cluster.finalizers.add("uid-shop-stuck")
    say(scene, announced())
    look(scene)
    say(scene, begun())
    monkeypatch.setattr(scene.world.drainer, "watched_pods", lambda node, uid: None)
    scene.api.before_read = no_pods
    look(scene)
    scene.api.before_read = None
    scene.cluster.finalizers.clear()
    scene.cluster.drop_pod("uid-shop-stuck")
    look(scene)

    assert result(look(scene)) == "late"


def no_pods(call: Call) -> None:
    if call.what == "pods":
        raise Unreachable("no answer in time")


def test_an_event_that_is_gone_after_its_date_has_started_meanwhile() -> None:
    scene = history("budget: {maxUnavailable: 1, ignore: {notReadyFor: 10h}}")
    say(scene, announced(minutes_ahead=2))
    look(scene, 5)
    say(scene, published(vm="vm"))
    plan = look(scene)
    (missed,) = told(scene, "MaintenanceMissed")

    assert result(plan) == "missed"
    assert "an unknown number of pods was on the node" in missed.notice.message


def test_a_request_reports_no_start_so_a_drained_node_is_drained() -> None:
    scene = history("budget: {maxUnavailable: 100%}")
    scene.cluster.annotate("a", REQUEST, builders.DRAIN_NOW)
    look(scene)
    look(scene)
    scene.cluster.annotate("a", REQUEST, None)

    assert results(scene) == {"drained"}


def test_observe_records_nothing() -> None:
    scene = history(ONE, mode="Observe")
    say(scene, begun())
    plan = look(scene)

    assert result(plan) == "running"
    assert (plan.todo.pending, plan.todo.noted) == ((), None)


@pytest.mark.heavy
@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_anywhere_each_warning_is_sent_at_least_once(number: int, when: str) -> None:
    scene = history("budget: {maxUnavailable: 1, ignore: {notReadyFor: 10h}}")
    dead = False

    def kill(call: Call) -> None:
        nonlocal dead
        if not dead and call.number == number:
            dead = True
            raise ProcessKilled

    if when == "before":
        scene.api.before_write = kill
    else:
        scene.api.after_write = kill
    for step in (announced(minutes_ahead=10), begun(), published(vm="vm")):
        say(scene, step)
        for _ in range(2):
            try:
                look(scene, 0)
            except ProcessKilled:
                scene.world.restart()
        scene.wait(timedelta(minutes=11))

    assert [one.notice.reason for one in told(scene)] == list(WARNINGS)


def refusing(scene: History) -> list[str]:
    """Have the API server refuse Events from now on; the list fills with the reasons of those it gets."""
    asked: list[str] = []

    def refuse(call: Call) -> None:
        if call.what == "notify":
            asked.append(call.subject)
            raise Unreachable("no answer in time")

    scene.api.before_write = refuse
    return asked


def test_a_case_ends_after_its_warning_could_be_sent() -> None:
    scene = history("budget: {maxUnavailable: 1, ignore: {notReadyFor: 10h}}")
    kept = Kept()
    scene.world.ended = kept
    say(scene, announced(minutes_ahead=2))
    look(scene, 5)
    say(scene, published(vm="vm"))
    refusing(scene)
    for _ in range(3):
        _, outcomes = scene.look()
        assert [one.result for one in outcomes] == [Result.LATER]
    assert builders.RECORD in scene.cluster.nodes["a"].annotations
    assert kept.cases == []
    scene.api.before_write = None
    look(scene)

    assert [one.notice.reason for one in told(scene, "MaintenanceMissed")] == ["MaintenanceMissed"]
    assert builders.RECORD not in scene.cluster.nodes["a"].annotations
    assert len(kept.cases) == 1


def test_a_node_comes_back_into_service_also_while_events_are_refused() -> None:
    scene = history("budget: {maxUnavailable: 100%}", pods=(pod("stuck", deleting_until=NOW),))
    scene.cluster.finalizers.add("uid-shop-stuck")
    say(scene, announced())
    look(scene)
    asked = refusing(scene)
    say(scene, begun())
    look(scene)
    scene.cluster.finalizers.clear()
    scene.cluster.drop_pod("uid-shop-stuck")
    say(scene, published(vm="vm"))
    for _ in range(4):
        look(scene, 3)

    assert not scene.cluster.nodes["a"].unschedulable
    assert asked.count("MaintenanceMissed") >= 3


def test_a_warning_is_asked_for_once_where_nothing_is_killed() -> None:
    scene = history("budget: {maxUnavailable: 1, ignore: {notReadyFor: 10h}}")
    calls: list[str] = []
    scene.api.before_write = lambda call: calls.append(call.subject) if call.what == "notify" else None
    for step in (announced(minutes_ahead=10), begun(), published(vm="vm")):
        say(scene, step)
        for _ in range(3):
            look(scene, 4)

    assert [reason for reason in calls if reason in WARNINGS] == list(WARNINGS)


@pytest.mark.parametrize("killed", [False, True], ids=["recorded", "not recorded"])
def test_a_miss_is_found_out_in_the_first_pass_that_records_it(killed: bool) -> None:
    scene = history(CLOSED)
    say(scene, announced())
    assert not look(scene, 30).struck
    say(scene, begun())
    if killed:
        record = dict(scene.cluster.nodes["a"].annotations)[builders.RECORD]
        assert look(scene).struck
        scene.cluster.annotate("a", builders.RECORD, record)

    assert [look(scene).struck for _ in range(3)] == [True, False, False]
    say(scene, None)
    ends = [look(scene, 5) for _ in range(3)]
    assert [one.struck for one in ends] == [False] * 3
    assert "missed" in [one.outcome.result.value for one in ends if one.outcome is not None]


def test_a_drain_that_ends_after_its_date_is_found_to_be_late_once() -> None:
    scene = history("budget: {maxUnavailable: 2}", pods=(pod("web-1"),))
    date = (NOW + minutes(2)).isoformat()
    scene.cluster.annotate("a", REQUEST, f'{{"kind":"Reboot","notBefore":"{date}"}}')
    scene.cluster.finalizers.add("uid-shop-web-1")
    found = [look(scene, 5)]
    scene.cluster.finalizers.clear()
    scene.cluster.drop_pod("uid-shop-web-1")
    found += [look(scene) for _ in range(4)]

    late = [result(one) == "late" for one in found]
    assert [one.struck for one in found] == [number == late.index(True) for number in range(5)]


def test_a_machine_that_was_taken_for_good_is_missed_although_nothing_can_say_that_the_platform_started() -> (
    None
):
    scene = history("budget: {maxUnavailable: 100%}", pods=(pod("web-1"),))
    scene.cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, min_available=1))
    say(scene, announced(Kind.PREEMPT, minutes_ahead=0.5))
    look(scene, 0.4)
    look(scene)
    look(scene)
    assert len(told(scene, "MaintenanceWillBeMissed")) == 1
    assert told(scene, "MaintenanceMissed") == []
    scene.cluster.node_down("a")
    assert result(look(scene)) == "missed"
    (missed,) = told(scene, "MaintenanceMissed")
    assert "1 pod" in missed.notice.message
    # What a budget allows now helps nobody any more, and the pods are deleted in the end.
    scene.cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, min_available=0))
    assert result(look(scene)) == "missed"
    scene.cluster.drop_pod("uid-shop-web-1")

    assert result(look(scene)) == "missed"
    assert told(scene, "MaintenanceNoLongerMissed") == []


def test_a_machine_that_is_down_before_it_is_taken_is_not_missed_yet() -> None:
    scene = history("budget: {maxUnavailable: 100%}", pods=(pod("stuck", deleting_until=NOW),))
    scene.cluster.finalizers.add("uid-shop-stuck")
    say(scene, announced(Kind.PREEMPT, minutes_ahead=10))
    look(scene)
    scene.cluster.node_down("a")

    assert result(look(scene)) == "running"
