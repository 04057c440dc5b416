"""Conditions that the settings name, pass by pass: what begins a case, and who ends it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.event import Answer
from reconciler.model.node import Condition
from reconciler.report.document import to_report
from reconciler.report.people import people
from reconciler.report.text import as_text
from reconciler.sources.named_condition import read_named
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, minutes, node, plan_of
from tests.support.worlds import world_of

DEADLOCK = builders.condition("KernelDeadlock", "True")


def history(text: str, *conditions: Condition) -> History:
    """Two nodes, of which `a` has these conditions."""
    return History(world_of([node("a", conditions=conditions), node("b")]), builders.settings(text))


def remedy(played: History) -> str:
    """How a person ends the case, as its hold says."""
    (hold,) = [hold for hold in plan_of(played.until_still()).holds if hold.code == "endReported"]
    return hold.reason


def test_the_command_that_ends_a_case_names_a_prefix_that_is_not_the_default() -> None:
    played = history("keys: {prefix: other.example}\nconditions: {KernelDeadlock: {}}", DEADLOCK)
    played.until_still()
    played.cluster.drop_condition("a", "KernelDeadlock")

    assert remedy(played).endswith("run reconciler release a --prefix other.example")


def test_a_condition_that_has_vanished_reports_no_end() -> None:
    played = history("conditions: {KernelDeadlock: {}}", DEADLOCK)
    played.until_still()
    assert played.cluster.nodes["a"].unschedulable
    played.cluster.drop_condition("a", "KernelDeadlock")

    assert "condition:KernelDeadlock reports nothing about the node any more" in remedy(played)


def test_a_condition_that_is_true_since_tomorrow_drains_its_node_after_its_time() -> None:
    tomorrow = NOW + timedelta(days=1)
    played = history("conditions: {KernelDeadlock: {for: 10m}}")
    for minute in range(11):
        played.cluster.set_condition(
            "a",
            Condition("KernelDeadlock", "True", heartbeat=tomorrow + minutes(minute), transition=tomorrow),
        )
        played.until_still()

        assert played.cluster.nodes["a"].unschedulable is (minute == 10)
        played.wait(minutes(1))


def fleet(text: str, *statuses: str) -> History:
    """Nodes of which each has the condition `KernelReady` with its status."""
    names = "abcdef"
    nodes = [
        node(name, conditions=(builders.condition("KernelReady", status),))
        for name, status in zip(names, statuses, strict=False)
    ]
    return History(world_of(nodes), builders.settings(text))


def cordoned(played: History) -> str:
    played.until_still()
    return "".join(name for name, one in sorted(played.cluster.nodes.items()) if one.unschedulable)


@pytest.mark.parametrize(
    ("text", "statuses", "drained"),
    [
        ("{}", ("True", "False"), "a"),
        ("{status: 'False'}", ("True", "False", "True"), "b"),
        ("{status: False}", ("True", "False", "True"), "b"),
        ("{status: Unknown}", ("True", "Unknown", "False"), "b"),
        ("{status: 'False'}", ("True", "Unknown", "True"), ""),
    ],
)
def test_the_named_status_drains_a_node_and_no_other(
    text: str, statuses: tuple[str, ...], drained: str
) -> None:
    assert cordoned(fleet(f"conditions: {{KernelReady: {text}}}", *statuses)) == drained


@pytest.mark.parametrize(
    ("statuses", "drained"),
    [
        (("True",), "a"),
        (("True", "False"), "a"),
        (("True", "True"), ""),
        (("True", "True", "False"), ""),
        (("True", "True", "False", "False"), "ab"),
    ],
)
def test_a_condition_on_most_nodes_drains_none(statuses: tuple[str, ...], drained: str) -> None:
    played = fleet("conditions: {KernelReady: {}}\nbudget: {maxUnavailable: 2}", *statuses)

    assert cordoned(played) == drained
    if not drained:
        held = plan_of(played.until_still())
        assert "conditionOnFewNodes" in builders.codes(held)
        assert held.schedule is not None
        assert held.schedule.planned_start is None


def test_a_condition_on_most_nodes_is_above_the_rows_and_waits_for_a_person() -> None:
    plan = fleet("conditions: {KernelReady: {}}", "True", "True").until_still()
    said = "KernelReady is True on 2 of 2 managed nodes"

    assert f"\nNOT DRAINED: a, b: {said}" in as_text(to_report(plan, rehearsed=False)).partition("\n\n")[0]
    assert any(said in ask.because for ask in people(plan))


def test_a_condition_that_is_on_few_nodes_again_drains_them() -> None:
    played = fleet("conditions: {KernelReady: {}}", "True", "True", "False")
    assert cordoned(played) == ""
    played.cluster.set_condition("b", builders.condition("KernelReady", "False"))

    assert cordoned(played) == "a"


@pytest.mark.parametrize(
    "request_text", [builders.DRAIN_NOW, '{"kind": "Redeploy", "notBefore": "2026-11-21T12:20:00Z"}']
)
def test_announced_maintenance_of_all_nodes_is_drained_beside_such_a_condition(request_text: str) -> None:
    played = fleet("conditions: {KernelReady: {}}\nbudget: {maxUnavailable: 3}", "True", "True", "True")
    for name in "abc":
        played.cluster.annotate(name, f"{builders.PREFIX}/request", request_text)

    assert cordoned(played) == "abc"


def test_such_a_condition_hides_no_latest_start() -> None:
    played = fleet("conditions: {KernelReady: {}}", "True", "True", "True")
    request = '{"kind": "Redeploy", "notBefore": "2026-11-23T12:00:00Z"}'
    played.cluster.annotate("a", f"{builders.PREFIX}/request", request)

    schedule = plan_of(played.until_still()).schedule
    assert schedule is not None
    assert schedule.latest_start == NOW + timedelta(days=2) - minutes(15)


def test_only_the_nodes_that_a_condition_drains_are_counted() -> None:
    text = "overrides: [{nodeSelector: {pool: gpu}, conditions: {KernelReady: {}}}]"
    sick = builders.condition("KernelReady", "True")
    nodes = [node(name, conditions=(sick,), labels={"pool": "gpu"}) for name in "ab"]
    played = History(world_of([*nodes, *map(node, "cdef")]), builders.settings(text))

    assert cordoned(played) == ""


def test_a_transition_that_can_not_be_meant_makes_a_named_condition_unknown() -> None:
    broken = Condition("KernelDeadlock", "True", transition=datetime(9999, 12, 31, tzinfo=UTC))
    (found,) = read_named(
        builders.node(conditions=(broken,)), builders.settings("conditions: {KernelDeadlock: {}}")
    )
    assert found.answer is Answer.UNKNOWN


@pytest.mark.parametrize(
    ("status", "expected"), [("True", Answer.EVENT), ("False", Answer.NO_EVENT), ("Unknown", Answer.UNKNOWN)]
)
def test_a_condition_that_the_settings_name_answers_as_it_says(status: str, expected: Answer) -> None:
    node = builders.node(conditions=(builders.condition("KernelDeadlock", status, "stuck"),))
    (answer,) = read_named(node, builders.settings("conditions: {KernelDeadlock: {}, Absent: {}}"))

    assert answer.answer is expected
    assert [one.condition for one in answer.signals] == ["KernelDeadlock"] * (expected is Answer.EVENT)
    assert [one.since for one in answer.signals] == [builders.LONG_AGO] * (expected is Answer.EVENT)
