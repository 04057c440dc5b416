"""Cases of a history as a scenario: the same events at their own times."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.features.simulate.scenario import recorded
from reconciler.features.simulate.scorer import Fate
from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase
from reconciler.model.event import Kind
from reconciler.model.values import replace
from tests.features.simulate.playing import play
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.cases import ended

SOURCE = "history.jsonl"


def of(*cases: EndedCase, nodes: int = 1, days: int | None = None) -> list[object]:
    return list(recorded(cases, nodes=nodes, days=days, source=SOURCE).events)


def test_a_case_is_an_event_with_its_notice_and_its_length() -> None:
    # Announced an hour before its end, due 20 minutes later, and gone three minutes before its end.
    found = recorded([ended("a", pool="np")], nodes=3, days=None, source=SOURCE)
    (event,) = found.events

    assert (event.node, event.kind) == ("a", Kind.REBOOT)
    assert (event.at, event.not_before) == (NOW - minutes(60), NOW - minutes(40))
    assert event.lasts == minutes(37)
    assert (event.cancelled, event.by_request) == (None, False)
    assert found.source == "from history.jsonl"
    # A node that no case names drains as those do that one names.
    assert [one.pool for one in found.nodes] == ["np"] * 3
    assert found.nodes[0].drain == minutes(2)


def test_what_a_history_does_not_say_is_taken_from_what_it_says() -> None:
    bare = ended("a", announced=None, not_before=None, started=None, drained=None, gone=None)
    (event,) = recorded([bare, ended("b")], nodes=2, days=None, source=SOURCE).events[:1]
    node = recorded([bare, ended("b")], nodes=2, days=None, source=SOURCE).nodes[0]

    assert event.at == event.starts == bare.times.case_start
    assert node.drain == minutes(2)


def test_a_cancelled_case_is_cancelled_again() -> None:
    (event,) = recorded(
        [ended(outcome=CaseResult.CANCELLED, gone=NOW - minutes(30))], nodes=1, days=None, source=SOURCE
    ).events

    assert event.cancelled == NOW - minutes(30)
    assert event.at < event.cancelled < event.starts


def test_a_request_is_played_as_a_request() -> None:
    (event,) = recorded([replace(ended(), sources=("request",))], nodes=1, days=None, source=SOURCE).events

    assert event.by_request


def test_the_last_days_are_played_and_the_others_are_counted() -> None:
    old = ended("old", at=NOW - timedelta(days=9))
    found = recorded([old, ended("new")], nodes=5, days=3, source=SOURCE)

    assert [event.node for event in found.events] == ["new"]
    assert found.notes == ("1 older events are not played (--days)",)
    assert found.end - found.start < timedelta(days=3)


def test_conditions_are_counted_and_too_few_nodes_are_named() -> None:
    found = recorded([ended("a"), ended("b", kind="KernelDeadlock")], nodes=1, days=None, source=SOURCE)

    assert len(found.nodes) == 2
    assert found.notes == (
        "1 cases are not played, because no platform event caused them: 1 KernelDeadlock",
        "the history names 2 nodes, more than --nodes 1; all of them are played",
    )


def test_a_history_without_a_case_that_can_be_played_says_so() -> None:
    with pytest.raises(ValueError, match="no case in it has a kind that can be played"):
        recorded([ended(kind="KernelDeadlock")], nodes=1, days=None, source=SOURCE)


def test_the_same_events_end_differently_under_another_budget() -> None:
    cases = [
        ended(name, announced=NOW, not_before=NOW + minutes(15), gone=NOW + minutes(25)) for name in "ab"
    ]
    found = recorded(cases, nodes=2, days=None, source=SOURCE)
    fates = [
        play(found, builders.settings(f"budget: {{maxUnavailable: {places}}}")).fates for places in (1, 2)
    ]

    assert fates == [{Fate.IN_WINDOW: 1, Fate.MISSED: 1}, {Fate.IN_WINDOW: 2}]
