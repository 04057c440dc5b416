"""Made-up fleets: a seed gives one fleet, at the documented rates."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.features.simulate.scenario import RATES, filled, made_up
from tests.features.simulate.scenarios import node

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
