"""Playing a scenario: the numbers of a written one, and that jumping and leaving nodes out change nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings

from reconciler.features.simulate.play import playable
from reconciler.features.simulate.scenario import Scenario
from reconciler.features.simulate.scorer import Fate
from reconciler.model.event import Kind
from reconciler.settings.schema import Mode, Settings
from tests.features.simulate.scenarios import START, event, node, play, scenario, scenarios
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import minutes
from tests.support.searching import examples

ONE_PLACE = builders.settings("budget: {maxUnavailable: 1}")

PLAYED = Hits()


@PLAYED.at_least(20)
@settings(max_examples=examples(25))
@given(scenarios(), strategies.policies())
def test_a_pass_every_minute_over_all_nodes_ends_the_same(played: Scenario, policy: Settings) -> None:
    score = play(played, policy)
    PLAYED.count(score.drains)

    assert score == play(played, policy, every=timedelta(minutes=1), whole=True)


def test_the_numbers_of_two_reboots_under_a_budget_of_one() -> None:
    # a is empty from 10:10 until 10:27: its event is over at 10:25, and it settles for two minutes. b waits
    # for the place from 10:05 on. It goes down at 10:20 with its pods, so it has a place of its own and its
    # drain begins. Its event is over at 10:30: the drain is stopped, and b is cordoned until 10:32.
    played = scenario(
        event("A", 0, 15), event("B", 5, 20, on="b"), nodes=(node("a", drain=10), node("b", drain=14))
    )
    score = play(played, ONE_PLACE)

    assert score.fates == {Fate.IN_WINDOW: 1, Fate.MISSED: 1}
    assert score.by_kind == {Kind.REBOOT: {Fate.IN_WINDOW: 1, Fate.MISSED: 1}}
    assert (score.asked, score.hopeless, score.drains) == (2, 0, 2)
    assert score.empty == minutes(17)
    assert (score.refused, score.waited) == (1, minutes(15))
    assert (score.most_out, score.most_out_at) == (2, START + minutes(20))
    # a from 10:00 until 10:27, b from 10:20 until 10:32.
    assert score.out == minutes(27 + 12)
    assert [(one.missed, one.refused, one.most_out) for one in score.worst_days()] == [(1, 1, 2)]


@pytest.mark.parametrize(
    "limits", ["maxUnavailable: 10%", "maxUnavailable: 9, perZone: 10%", "maxUnavailable: 9, perPool: 10%"]
)
def test_a_percentage_is_of_all_nodes(limits: str) -> None:
    # A tenth of eleven nodes is two, rounded up; a tenth of the two with events would be one.
    fleet = tuple(node(name) for name in "abcdefghijk")
    policy = builders.settings(f"budget: {{{limits}}}")
    played = scenario(event("A", 0, 15), event("B", 0, 15, on="b"), nodes=fleet)

    assert play(played, policy).fates == {Fate.IN_WINDOW: 2}


def test_a_place_that_is_given_up_is_taken_at_once() -> None:
    # a is uncordoned at 10:27, and the drain of b begins in the same moment.
    policy = builders.settings("budget: {maxUnavailable: 1}\nevents: {Reboot: {start: Early}}")
    score = play(scenario(event("A", 0, 15), event("B", 5, 180, on="b")), policy)

    assert score.fates == {Fate.IN_WINDOW: 2}
    assert (score.refused, score.waited) == (1, minutes(22))


def test_a_drain_outside_of_the_window_is_counted_apart() -> None:
    policy = builders.settings("windows: [{start: '12:00', end: '13:00'}]")
    played = scenario(event("A", 0, 15), event("B", 5, 180, on="b"))

    assert play(played, policy).fates == {Fate.AT_DEADLINE: 1, Fate.IN_WINDOW: 1}


def test_a_drain_after_the_date_and_before_the_start_is_late() -> None:
    played = scenario(event("A", 0, 15, not_before=START + minutes(5)))

    assert play(played, ONE_PLACE).fates == {Fate.LATE: 1}


def test_what_is_not_drained_has_the_reason_counted() -> None:
    played = scenario(
        event("ignored", 0, 15, kind=Kind.FREEZE, seconds=5),
        event("cancelled", 0, 60, on="b", cancelled=START + minutes(20)),
        event("short", 100, 100.5, kind=Kind.PREEMPT),
    )
    score = play(played, ONE_PLACE)

    assert score.fates == {Fate.IGNORED: 1, Fate.CANCELLED: 1, Fate.MISSED: 1}
    assert score.hopeless == 1


def test_an_event_that_no_source_reports_is_no_miss() -> None:
    policy = builders.settings("sources: {imds: {enabled: false}, nodeConditions: {enabled: false}}")

    assert play(scenario(event("A", 0, 15)), policy).fates == {Fate.UNSEEN: 1}


def test_conditions_report_what_no_agent_may() -> None:
    policy = builders.settings("sources: {imds: {enabled: false}}")

    assert play(scenario(event("A", 0, 15)), policy).fates == {Fate.IN_WINDOW: 1}


def test_a_request_is_missed_when_its_author_gives_up_on_a_node_that_is_not_empty() -> None:
    slow = (node("a", drain=30), node("b"), node("c", drain=500))
    played = scenario(
        event("late", 0, 20, by_request=True, lasts=minutes(20)),
        event("in time", 60, 80, on="b", by_request=True),
        event("missed", 100, 120, on="c", by_request=True),
        nodes=slow,
    )

    assert play(played, ONE_PLACE).fates == {Fate.LATE: 1, Fate.IN_WINDOW: 1, Fate.MISSED: 1}


def test_a_vm_that_is_gone_counts_until_a_new_one_has_joined() -> None:
    # The VM goes at 10:15, five minutes after the drain, and is back five minutes later.
    score = play(scenario(event("A", 0, 15, kind=Kind.TERMINATE)), ONE_PLACE)

    assert (score.empty, score.out, score.most_out) == (minutes(5), minutes(20), 1)


def test_any_mode_is_played_as_enforce() -> None:
    policy = builders.settings("publish: [drainsafe]\nsources: {arm: {enabled: true}}", mode="Observe")
    played = playable(policy)

    sections = played.model_dump(include={"publish", "sources"})
    assert (played.mode, sections["publish"], sections["sources"]["arm"]["enabled"]) == (
        Mode.ENFORCE,
        (),
        False,
    )
    assert play(scenario(event("A", 0, 15)), policy).drains == 1
