"""A drain that a person has stopped, and a node that the mode brings back no more, are said to be so."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.event import Kind
from reconciler.model.instructions import PersonHold, Word
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import DrainRecord
from reconciler.model.schedule import CaseForecast
from reconciler.model.snapshot import Ledger
from reconciler.report.ahead import Status, plan_ahead
from reconciler.report.document import to_report
from reconciler.report.explain import obstacles
from reconciler.report.text import as_text
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import (
    NOW,
    held_node,
    known,
    minutes,
    node,
    plan_of,
    planned,
    record,
    reported,
    signal,
    snapshot,
)

DATE = NOW + minutes(30)
DRAINS = record(events=(known(Kind.REDEPLOY, not_before=DATE),), drain=DrainRecord(NOW - minutes(1)))
DRAINED = record(events=(known(Kind.REDEPLOY, not_before=DATE),))
REDEPLOY = reported(signal(Kind.REDEPLOY, not_before=DATE))


def stopped(until: datetime | None = None, scope: str = "all") -> Plan:
    """The plan after `hold --now` of all nodes, while the drain of one runs."""
    hold = PersonHold(Word("alice", NOW, until, scope=scope), stops=True)
    seen = snapshot(
        held_node(DRAINS, pool="np"), node("b"), readings={"a": REDEPLOY}, ledger=Ledger(holds=(hold,))
    )
    return planned(seen)


def ask(plan: Plan, code: str, chosen: Settings | None = None) -> str:
    """Whom an explanation of the node asks about the hold with this code."""
    keys = (chosen or builders.settings()).keys.names
    return next(one.who for one in obstacles(plan_of(plan), keys) if one.code == code)


def test_a_stopped_drain_is_a_stop_in_the_plan_with_what_follows_and_the_command() -> None:
    plan = stopped()
    schedule = plan_of(plan).schedule
    assert schedule is not None
    assert schedule.forecast is CaseForecast.WILL_BE_MISSED
    assert "its drain is stopped: all nodes are held by alice" in schedule.forecast_words
    assert "reconciler resume --all ends that" in schedule.forecast_words
    assert schedule.ends is None
    assert plan.budget.holders == (("a", "ours, stopped"),)


def test_a_stop_that_ends_before_the_date_is_no_miss_but_a_stop() -> None:
    plan = stopped(until=NOW + minutes(5))
    ahead = plan_ahead(plan, plan.labels, builders.settings().calendar, NOW + minutes(600))
    (case,) = ahead.cases

    assert case.status is Status.STOPPED
    assert "its drain is stopped" in case.forecast_words


@pytest.mark.parametrize(
    ("scope", "command"), [("all", "reconciler resume --all"), ("pool np", "reconciler resume --pool np")]
)
def test_whoever_is_asked_gets_the_command_that_really_ends_the_hold(scope: str, command: str) -> None:
    assert command in ask(stopped(scope=scope), "notStopped")


def over(mode: str, quiet: datetime | None = None) -> NodePlan:
    """A drained node whose event is gone, in this mode."""
    held = builders.held_node(record(events=DRAINED.events, quiet_since=quiet))
    return plan_of(
        planned(snapshot(held, node("b"), readings={"a": reported()}), builders.settings(mode=mode))
    )


@pytest.mark.parametrize("quiet", [None, NOW - minutes(1)])
def test_in_observe_nobody_brings_a_node_back_and_the_plan_says_so_at_once(quiet: datetime | None) -> None:
    plan = over("Observe", quiet)
    (hold,) = [one for one in plan.holds if one.code == "eventsGone"]

    assert hold.reason == "the events are gone, and mode Observe uncordons no node"
    assert hold.until is None
    assert plan.schedule is not None
    assert plan.schedule.ends is None
    (obstacle,) = [one for one in obstacles(plan, builders.settings().keys.names) if one.code == "eventsGone"]
    assert not obstacle.by_itself
    assert "`mode: Finish`" in obstacle.who
    assert "reconciler release a" in obstacle.who


def test_finish_ends_the_cases_that_have_begun() -> None:
    assert over("Finish", NOW - minutes(5)).todo.write is not None
    plan = over("Finish", NOW - minutes(1))
    (obstacle,) = [one for one in obstacles(plan, builders.settings().keys.names) if one.code == "eventsGone"]

    assert obstacle.by_itself
    assert "after the settle time" in obstacle.who


def test_a_report_promises_no_moment_that_moves_on_with_it() -> None:
    seen = snapshot(held_node(DRAINED), node("b"), readings={"a": reported()})
    text = as_text(to_report(planned(seen), rehearsed=True))

    assert "the events are gone, seen first now; the node settles for 2m" in text
    assert "settles until" not in text
