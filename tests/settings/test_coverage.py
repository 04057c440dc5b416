"""What new settings no longer guard is said: at `check-config`, and for an hour in `serve`."""

from __future__ import annotations

import pytest

from jobs.runtime.settings_source import LESS_FOR, LessGuarded
from reconciler.model.plan import Plan
from reconciler.model.snapshot import FleetNode
from reconciler.settings.coverage import losses
from tests.support.builders import NOW, settings

NODES = frozenset("abcde")


def said(before: str, after: str, managed: frozenset[str] = NODES, now: frozenset[str] = NODES) -> list[str]:
    """The keys of what the second settings no longer do."""
    return [each.key for each in losses(settings(before), settings(after), managed, now, NODES)]


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ("", "budget: {spacing: 1m}", []),
        ("", "mode: Observe", ["mode"]),
        ("mode: Observe", "mode: Finish", []),
        ("", "events: {Redeploy: {drain: false}}", ["events.Redeploy.drain"]),
        ("events: {Redeploy: {drain: false}}", "", []),
        ("conditions: {Bad: {for: 5m}}", "", ["conditions.Bad"]),
        ("", "sources: {nodeConditions: {enabled: false}}", ["sources.nodeConditions"]),
    ],
)
def test_what_turns_cases_off_is_named_by_its_key(before: str, after: str, keys: list[str]) -> None:
    assert said(before, after) == keys


@pytest.mark.parametrize(
    ("now", "keys"),
    [("", ["nodeSelector"]), ("ab", ["nodeSelector"]), ("abc", [])],
    ids=["none is left", "more than half are lost", "less than half are lost"],
)
def test_settings_that_lose_most_nodes_are_named(now: str, keys: list[str]) -> None:
    assert said("", "", NODES, frozenset(now)) == keys


class Clock:
    """A clock that stands until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def plan_with(managed: str) -> Plan:
    """A plan in which these of five nodes are managed."""
    fleet = tuple(FleetNode(name, managed=name in managed) for name in sorted(NODES))
    return Plan(NOW, "Enforce", fleet=fleet)


def test_it_is_said_once_and_shown_for_an_hour() -> None:
    clock, typo = Clock(), settings("nodeSelector: {agentpol: pool0}")
    less = LessGuarded(clock)

    assert less.passed(settings(), plan_with("abcde")) == ""
    assert "selects none of the 5 nodes" in less.passed(typo, plan_with(""))
    assert less.passed(typo, plan_with("")) == ""
    clock.now = LESS_FOR - 1
    assert "nodeSelector" in less.words()
    clock.now = LESS_FOR
    assert less.words() == ""


def test_another_change_is_compared_with_what_was_before_the_first_and_a_repair_ends_it() -> None:
    less, good = LessGuarded(Clock()), settings()
    less.passed(good, plan_with("abcde"))
    less.passed(settings("nodeSelector: {agentpol: pool0}"), plan_with(""))
    less.passed(settings("nodeSelector: {agentpol: pool1}"), plan_with(""))

    assert "selects none" in less.words()
    less.passed(settings("timeZone: Europe/Berlin"), plan_with("abcde"))
    assert less.words() == ""


def test_nodes_that_come_and_go_say_nothing_of_the_settings() -> None:
    less, good = LessGuarded(Clock()), settings()
    less.passed(good, plan_with("abcde"))

    assert less.passed(good, plan_with("a")) == ""
