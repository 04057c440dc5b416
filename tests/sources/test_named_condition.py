"""Conditions that the settings name, pass by pass: what begins a case, and who ends it."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.node import Condition
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
