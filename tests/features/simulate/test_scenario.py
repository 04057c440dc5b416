"""Fleets and events that are played: made up, or from a history."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.features.simulate.scenario import RATES, filled, made_up, recorded
from reconciler.features.simulate.scorer import Fate
from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase
from reconciler.model.event import Kind
from reconciler.model.values import replace
from tests.features.simulate.scenarios import node, play
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.cases import ended

START = datetime(2026, 1, 5, tzinfo=UTC)
DOCS = Path(__file__).parents[3] / "docs" / "planning.md"


def test_a_seed_gives_one_fleet_and_another_seed_another() -> None:
    one, same, other = (made_up(seed, start=START, days=30, nodes=50) for seed in (7, 7, 8))

    assert one == same
    assert one.events != other.events


def test_a_thousand_nodes_have_two_thousand_events_in_ninety_days() -> None:
    found = made_up(7, start=START, days=90, nodes=1000)
    kinds = Counter(event.kind for event in found.events)

    assert len(found.nodes) == len({one.name for one in found.nodes}) == 1000
    assert {one.zone for one in found.nodes} == {f"westeurope-{zone}" for zone in (1, 2, 3)}
    assert sum(rate.count for rate in RATES) == 2000
    # Two events that would begin on a node in the same minute are one.
    assert 1990 <= len(found.events) <= 2000
    assert set(kinds) == {rate.kind for rate in RATES}
    assert len({event.id for event in found.events}) == len(found.events)


def test_events_begin_and_end_in_the_time_that_is_played() -> None:
    found = made_up(7, start=START, days=20, nodes=200)

    assert found.end == START + timedelta(days=20)
    for event in found.events:
        assert found.start <= event.at <= event.starts == event.not_before
        assert event.starts + event.lasts < found.end


def test_spot_vms_alone_are_reclaimed() -> None:
    found = made_up(7, start=START, days=90, nodes=200)
    spot = {one.name for one in found.nodes if one.spot}
    reclaimed = {event.node for event in found.events if event.kind == "Preempt"}

    assert reclaimed
    assert reclaimed <= spot
    assert len(spot) == 30


def test_nodes_that_nobody_names_are_like_those_that_are_named() -> None:
    named = (node("a", zone="1", pool="x"), node("other-00001", zone="2", pool="y"))
    found = filled(named, 20, 7)

    assert found[:2] == named
    assert len({one.name for one in found}) == 20
    assert {(one.zone, one.pool) for one in found} == {("1", "x"), ("2", "y")}
    assert filled(named, 1, 7) == named


def test_every_rate_is_documented() -> None:
    page = DOCS.read_text(encoding="utf-8")

    assert [
        rate.name for rate in RATES if f"| {rate.name} | `{rate.kind}` | {rate.count} |" not in page
    ] == []


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
        "1 case is not played, because no platform event caused them: 1 KernelDeadlock",
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
