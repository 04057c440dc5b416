"""What a feature can do for a node that will be missed is offered wherever a person reads of the miss."""

from __future__ import annotations

import pytest

import reconciler.run
from reconciler.model.event import Kind
from reconciler.model.explanation import Moves
from reconciler.model.keys import OwnKeys
from reconciler.model.plan import NodePlan, Plan, PodVerdict
from reconciler.passes.decide.facts import WARNED_AFTER, WILL_BE_MISSED
from reconciler.passes.parts import Parts
from reconciler.passes.plugin import Feature
from reconciler.report.document import to_report
from reconciler.report.explain import obstacles
from reconciler.report.moves import move_of
from reconciler.report.people import people
from reconciler.report.table import as_table
from reconciler.report.text import as_text
from reconciler.report.values import plain
from reconciler.run import PARTS
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes, node, plan_of, planned, reported, signal, snapshot
from tests.support.worlds import world_of

COMMAND = "kubectl crane lift a"
BY_HAND = "reconciler drain a --ignore-daemonsets"
LATE = [
    pytest.param(
        "notAllowed: [{name: freeze, start: 2026-11-20, end: 2026-11-24, absolute: true}]", id="freeze"
    ),
    pytest.param(
        'windows: [{days: [Mon], start: "22:00", end: "23:00"}]\nevents: {Redeploy: {outsideWindow: Never}}',
        id="a window that opens too late",
    ),
]
"""What ends by itself, but after the latest start."""


@pytest.fixture
def crane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a feature offer one command for each missed node, and none another feature."""
    lifts = Feature("crane", remedies=lambda _, node, __: (f"kubectl crane lift {node.name}",))
    _only(monkeypatch, lifts, Feature("idle", remedies=lambda *_: ()), Feature("other"))


def _only(monkeypatch: pytest.MonkeyPatch, *features: Feature) -> None:
    monkeypatch.setattr(builders, "PARTS", Parts(PARTS.sources, features))


def missed(text: str = "budget: {maxUnavailable: 0}") -> Plan:
    """A pass over two nodes, of which the first has a Redeploy in an hour for which no drain starts."""
    told = reported(signal(Kind.REDEPLOY, not_before=NOW + minutes(60)))
    return planned(snapshot(node(), node("b"), readings={"a": told}), builders.settings(text))


def asked(plan: NodePlan) -> str:
    (one,) = obstacles(plan, OwnKeys())
    assert not one.by_itself
    return one.who


@pytest.mark.parametrize("text", LATE)
def test_who_can_end_a_hold_that_ends_too_late_has_the_command(crane: None, text: str) -> None:
    who = asked(plan_of(missed(text)))

    assert "`windows`" in who
    assert who.endswith(f"; or whoever is on call: `{COMMAND}`")


@pytest.mark.parametrize("text", LATE)
def test_without_a_remedy_it_is_drained_by_hand(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    _only(monkeypatch)
    who = asked(plan_of(missed(text)))

    assert "`windows`" in who
    assert who.endswith(f"; or by hand: `{BY_HAND}`")


def test_each_text_about_the_miss_has_the_command(crane: None) -> None:
    plan = missed()
    a = plan_of(plan)
    pod = builders.pod("web-1", "a")

    report = " ".join(as_text(to_report(plan, rehearsed=True)).split())
    assert f"; `{COMMAND}` lets its drain begin" in report
    assert [COMMAND in ask.who for ask in people(plan)] == [True]
    assert a.schedule is not None
    assert plain(a.schedule)["remedies"] == [COMMAND]
    moves = move_of(pod, a, PodVerdict(pod.key, pod.uid, "evict"), None)
    assert (moves.answer, moves.who) == (Moves.BLOCKED, f"whoever is on call: `{COMMAND}`")


def test_the_table_names_each_command_once_with_its_nodes(crane: None) -> None:
    told = reported(signal(Kind.REDEPLOY, not_before=NOW + minutes(60)))
    closed = builders.settings("budget: {maxUnavailable: 0}")
    one = planned(snapshot(node(), node("b"), readings={"a": told}), closed)
    both = planned(snapshot(node(), node("b"), readings={"a": told, "b": told}), closed)

    assert f"`{COMMAND}` lets its drain begin" in _table(one)
    assert [line for line in _table(both) if "lift" in line] == [
        "`kubectl crane lift NODE` lets the drain of a, b begin"
    ]


def _table(plan: Plan) -> list[str]:
    return [line.text for line in as_table(to_report(plan, rehearsed=True))]


def test_the_warning_event_has_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    lifts = Feature("crane", remedies=lambda *_: (COMMAND,))
    monkeypatch.setattr(reconciler.run, "PARTS", Parts(PARTS.sources, (lifts,)))
    asked = {REQUEST: f'{{"kind":"Redeploy","notBefore":"{NOW + minutes(300):%Y-%m-%dT%H:%M:%SZ}"}}'}
    history = History(world_of([node(annotations=asked)]), builders.settings("budget: {maxUnavailable: 0}"))

    history.until_still()
    history.wait(WARNED_AFTER)
    history.until_still()

    (event,) = history.cluster.events
    assert event.notice.reason == WILL_BE_MISSED
    assert event.notice.message.endswith(f"; `{COMMAND}` lets its drain begin")


def test_a_node_that_is_not_missed_offers_nothing(crane: None) -> None:
    plan = missed("budget: {maxUnavailable: 1}\nevents: {Redeploy: {start: Late, ahead: 5m}}")
    schedule = plan_of(plan).schedule

    assert schedule is not None
    assert not schedule.missed
    assert schedule.remedies == ()
    assert people(plan) == ()
