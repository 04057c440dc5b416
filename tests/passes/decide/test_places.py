"""A place that somebody else holds, holds by other tools, and machines that do not come back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from reconciler.model.event import Kind, PlatformPlan
from reconciler.model.holds import NODE_WRITABLE
from reconciler.model.node import AUTOSCALER_TAINT, REMEDIATOR_TAINT, Node, Taint
from reconciler.model.schedule import CaseForecast, CaseSchedule
from reconciler.model.values import replace
from reconciler.starts.answer import as_decided
from tests.laws.histories import History, by_hand
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes, node, plan_of
from tests.support.searching import examples
from tests.support.worlds import world_of

ONE = "budget: {maxUnavailable: 1}"
DAYS = 24 * 60


def due(after: float, kind: str = "Reboot") -> str:
    """A request for an event in so many minutes."""
    return f'{{"kind":"{kind}","notBefore":"{NOW + minutes(after):%Y-%m-%dT%H:%M:%SZ}"}}'


def beside(after: float, text: str = ONE) -> History:
    """Node a has a reboot in so many minutes, and b has none."""
    return History(
        world_of([node("a", annotations={REQUEST: due(after)}), node("b")]), builders.settings(text)
    )


def scheduled(history: History, name: str = "a") -> CaseSchedule:
    """What the plan says of a node when nothing is written any more."""
    found = plan_of(history.until_still(), name).schedule
    assert found is not None
    return found


@pytest.mark.parametrize("how", ["a cordon", "a drain by hand", "a taint"])
@pytest.mark.parametrize(
    ("taken", "latest", "missed"),
    [
        pytest.param(0, 40, False, id="just taken"),
        pytest.param(0, 20, True, id="just taken, and sooner than half an hour"),
        pytest.param(3 * DAYS, 2 * DAYS, True, id="taken for longer than is left"),
        pytest.param(3 * DAYS, 5 * DAYS, False, id="taken for less time than is left"),
    ],
)
def test_a_place_of_others_is_assumed_to_stay_taken_for_as_long_as_it_has_been(
    how: str, taken: float, latest: float, missed: bool
) -> None:
    history = beside(taken + latest + 15)
    if how == "a cordon":
        history.cluster.cordon("b")
    elif how == "a taint":
        theirs = tainted(history.cluster.nodes["b"], AUTOSCALER_TAINT)
        history.cluster.put_node(replace(theirs, tainted_since=NOW))
    else:
        by_hand(history, "b")
    history.wait(minutes(taken))
    found = scheduled(history)

    assert found.missed is missed
    assert found.latest_start == history.now + minutes(latest)
    if not missed:
        assert found.planned_start is not None
        assert found.planned_start <= found.latest_start


def test_a_case_that_waits_for_a_place_of_others_starts_once_that_is_free() -> None:
    history = beside(55)
    history.cluster.cordon("b")
    history.wait(minutes(20))
    assert scheduled(history).missed

    history.cluster.cordon("b", on=False)
    assert not scheduled(history).missed
    assert history.cluster.nodes["a"].unschedulable


def test_a_case_whose_end_is_overdue_is_not_said_to_come_back_and_keeps_its_place_as_long() -> None:
    history = beside(10 * DAYS)
    history.cluster.annotate("b", REQUEST, due(20))
    history.until_still()
    history.wait(minutes(5 * DAYS))

    assert scheduled(history, "b").ends is None
    assert not scheduled(history).missed
    history.cluster.annotate("a", REQUEST, due(7 * DAYS))
    assert scheduled(history).missed


def tainted(one: Node, key: str) -> Node:
    return replace(one, taints=(Taint(key, "", "NoSchedule"),))


TOOLS: dict[str, tuple[str, Callable[[Node], Node]]] = {
    "the cluster autoscaler": ("", lambda one: tainted(one, AUTOSCALER_TAINT)),
    "AKS's remediator": ("coexist: {aksRemediator: Leave}", lambda one: tainted(one, REMEDIATOR_TAINT)),
    "AKS's remediator is working": (
        "coexist: {aksRemediator: Leave}",
        lambda one: tainted(one, "remediator.aks.microsoft.com/unschedulable"),
    ),
    "AKS upgrades": ("", lambda one: replace(one, annotations={**one.annotations, **builders.IN_UPGRADE})),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_plan_knows_that_another_tool_has_the_node_and_the_drain_waits_until_its_latest_start(
    tool: str,
) -> None:
    text, change = TOOLS[tool]
    history = beside(120, text)
    history.cluster.put_node(change(history.cluster.nodes["a"]))
    latest = NOW + minutes(105)
    for _ in range(2):
        found = scheduled(history)
        assert (found.planned_start, found.latest_start, found.missed) == (latest, latest, False)
        assert tool in found.because
        history.wait(minutes(45))
    history.wait(latest - history.now - timedelta.resolution)
    history.until_still()
    assert not history.cluster.nodes["a"].unschedulable

    history.wait(timedelta.resolution)
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable


def test_a_plan_for_days_is_over_with_the_last_of_them() -> None:
    signal = builders.signal(Kind.REDEPLOY, not_before=NOW + timedelta(days=1))
    signal = dataclasses.replace(signal, plan=PlatformPlan(NOW + timedelta(days=8)))
    seen = builders.snapshot(node("a"), node("b"), readings={"a": builders.reported(signal)})
    schedule = plan_of(builders.planned(seen)).schedule

    assert schedule is not None
    assert schedule.ends == NOW + timedelta(days=8) + minutes(2)


MISSED_PLANS = Hits()


@MISSED_PLANS.at_least(20)
@tries(max_examples=examples(40))
@given(
    st.integers(min_value=1, max_value=30 * 24),
    st.lists(st.integers(min_value=0, max_value=20 * 24), max_size=4),
    st.sampled_from((1, 2)),
)
def test_a_missed_node_takes_no_place_for_all_the_days_of_its_plan(
    hours: int, others: list[int], places: int
) -> None:
    """It stays in service until the platform begins, on one of the days, and is out of service once."""
    first = NOW + timedelta(days=2)
    text = builders.settings(f"budget: {{maxUnavailable: {places}}}")
    dates = {f"a{number}": first for number in range(places)}
    dates |= {f"b{number}": first + timedelta(hours=later) for number, later in enumerate(others)}

    def plan(until: datetime) -> dict[str, CaseSchedule]:
        signals = {name: builders.signal(Kind.REDEPLOY, not_before=date) for name, date in dates.items()}
        planned = builders.signal(Kind.REDEPLOY, not_before=first)
        signals["z"] = dataclasses.replace(planned, plan=PlatformPlan(until))
        nodes = (node(name) for name in (*signals, "idle"))
        readings = {name: builders.reported(signal) for name, signal in signals.items()}
        made = builders.planned(builders.snapshot(*nodes, readings=readings), text)
        found = {name: plan_of(made, name).schedule for name in signals}
        return {name: schedule for name, schedule in found.items() if schedule is not None}

    long, short = plan(first + timedelta(hours=hours)), plan(first)
    if long["z"].missed and long["z"].planned_start is None:
        MISSED_PLANS.count()
        for name in dates:
            starts = [(one[name].planned_start, one[name].ends, one[name].missed) for one in (long, short)]
            assert starts[0] == starts[1], name


def test_a_drain_that_runs_waits_for_the_autoscaler_until_its_latest_start() -> None:
    history = beside(120, "events: {Reboot: {start: Early}}")
    history.cluster.add_pod(builders.pod("web", "a"))
    history.cluster.put_node(tainted(history.cluster.nodes["a"], AUTOSCALER_TAINT))
    history.until_still()
    assert history.cluster.pods_on("a")

    history.wait(minutes(105))
    history.until_still()
    assert not history.cluster.pods_on("a")


@pytest.mark.parametrize(
    ("latest", "until", "start", "missed"),
    [
        pytest.param(40, None, None, False, id="nobody knows when it ends"),
        pytest.param(40, 30, 30, False, id="it ends in time"),
        pytest.param(40, 50, 50, True, id="it ends too late"),
        pytest.param(-1, None, None, True, id="the latest start has passed"),
    ],
)
def test_a_start_that_a_check_holds_is_not_planned_for_now(
    latest: float, until: float | None, start: float | None, missed: bool
) -> None:
    ends = None if until is None else NOW + minutes(until)
    hold = NODE_WRITABLE.on("a", "a webhook denies it", until=ends)
    held = as_decided(CaseSchedule(NOW, NOW + minutes(latest)), (hold,), NOW)

    assert held is not None
    assert (held.planned_start, held.missed) == (None if start is None else NOW + minutes(start), missed)
    assert "a webhook denies it" in held.because
    assert (held.forecast is CaseForecast.UNKNOWN) == (start is None and not missed)


def test_when_a_node_comes_back_that_stays_not_ready_after_its_settle_time_is_not_known() -> None:
    history = beside(10 * DAYS)
    history.cluster.annotate("b", REQUEST, due(5))
    history.until_still()
    history.cluster.node_down("b")
    history.cluster.annotate("b", REQUEST, None)
    assert scheduled(history, "b").ends == history.now + minutes(2)

    history.wait(minutes(3))
    assert scheduled(history, "b").ends is None


@pytest.mark.parametrize("kind", ["Preempt", "Terminate"])
def test_a_node_whose_machine_was_taken_gives_its_place_on_once_it_is_not_ready(kind: str) -> None:
    history = beside(10 * DAYS, "budget: {maxUnavailable: 1, ignore: {notReadyFor: 1d}}")
    history.cluster.annotate("b", REQUEST, due(5, kind))
    found = scheduled(history, "b")
    assert (found.comes_back, found.ends) == (False, None)
    history.wait(minutes(6))
    assert dict(history.until_still().budget.holders) == {"b": "ours, drained"}

    history.cluster.node_down("b")
    plan = history.until_still()
    assert dict(plan.budget.holders) == {}
    (hold,) = (one for one in plan_of(plan, "b").holds if one.code == "machineComesBack")
    assert f"{kind} has taken the machine" in hold.reason


@pytest.mark.parametrize("settle", ["0s", "10s", "10m"])
def test_who_waits_for_the_place_of_a_machine_that_is_taken_waits_for_no_settle_time(settle: str) -> None:
    history = beside(10, f"{ONE}\nuncordon: {{settle: {settle}}}")
    history.cluster.annotate("a", REQUEST, None)
    history.cluster.annotate("b", REQUEST, due(0.5, "Preempt"))
    history.until_still()
    history.cluster.annotate("a", REQUEST, due(10))
    # The node is NotReady 50 seconds after the power is gone.
    for _ in range(8):
        assert not scheduled(history).missed
        history.wait(timedelta(seconds=10))
    history.cluster.node_down("b")

    assert scheduled(history).started
    assert [event.notice.reason for event in history.cluster.events if "Missed" in event.notice.reason] == []


def test_a_node_in_maintenance_that_stays_not_ready_gives_its_place_on() -> None:
    history = beside(10 * DAYS)
    history.cluster.annotate("b", REQUEST, due(5, Kind.REDEPLOY))
    history.until_still()
    history.cluster.node_down("b")
    assert dict(history.until_still().budget.holders) == {"b": "ours, drained"}

    history.wait(minutes(30))
    assert dict(history.until_still().budget.holders) == {}
