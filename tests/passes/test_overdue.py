"""While no reconciler runs, a rehearsal promises nothing, and says so of each node with a case."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.event import Kind
from reconciler.model.holds import RECONCILER_RUNS
from reconciler.model.plan import Plan
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.record import State
from reconciler.model.schedule import CaseForecast
from reconciler.model.values import replace
from reconciler.passes.unattended import unattended
from reconciler.report.document import to_report
from reconciler.report.text import as_text
from tests.support.builders import (
    NOW,
    codes,
    held_node,
    known,
    minutes,
    node,
    plan_of,
    planned,
    record,
    reported,
    settings,
    signal,
    snapshot,
)

LAST = NOW - timedelta(minutes=5)
OVERDUE = Reconciler(Running.OVERDUE, last_pass=LAST, interval=timedelta(seconds=30))


def announced(start_in: float) -> Plan:
    """A node with a Redeploy in so many minutes, and one in service."""
    reboot = reported(signal(Kind.REDEPLOY, not_before=NOW + minutes(start_in)))
    seen = snapshot(node("a"), node("b"), node("c"), node("d"), readings={"a": reboot})
    return replace(planned(replace(seen, reconciler=OVERDUE), settings("budget: {maxUnavailable: 1}")))


def settling() -> Plan:
    """A drained node, whose event is gone since a moment."""
    held = record(events=(known(Kind.REDEPLOY, not_before=NOW + minutes(60)),), quiet_since=NOW)
    seen = snapshot(held_node(held), node("b"))
    return planned(replace(seen, reconciler=OVERDUE))


@pytest.mark.parametrize("start_in", [5, 20, 600])
def test_no_start_is_promised(start_in: float) -> None:
    before = announced(start_in)
    plan = plan_of(unattended(before))

    assert plan_of(before).schedule is not None
    assert plan.schedule is not None
    assert (plan.schedule.planned_start, plan.schedule.ends, plan.schedule.started) == (None, None, False)
    assert plan.schedule.forecast is not CaseForecast.ON_TRACK
    assert (plan.after, plan.acts, plan.transitions) == (State.OPERATIONAL, False, ())
    assert RECONCILER_RUNS.code in codes(plan)
    assert unattended(before).budget.holders == ()


def test_a_latest_start_that_is_over_will_be_missed() -> None:
    redeploy = reported(signal(Kind.REBOOT, not_before=NOW + minutes(15)))
    seen = replace(snapshot(node("a"), readings={"a": redeploy}), reconciler=OVERDUE)

    plan = plan_of(unattended(planned(seen)))

    assert plan.schedule is not None
    assert plan.schedule.forecast is CaseForecast.WILL_BE_MISSED
    assert (
        plan.schedule.because
        == "no reconciler runs, so nobody acts on this node now, and its latest start is over"
    )


def test_a_node_that_settles_says_that_nobody_uncordons_it() -> None:
    before = settling()
    text = as_text(to_report(unattended(before), rehearsed=True))

    assert any("the node settles for" in hold.reason for hold in plan_of(before).holds)
    assert "no reconciler runs, so nobody acts on this node now" in text
    assert "settles for" not in text
    schedule = plan_of(unattended(before)).schedule
    assert schedule is not None
    assert schedule.ends is None


@pytest.mark.parametrize("running", [each for each in Running if each is not Running.OVERDUE])
def test_every_other_plan_stays_as_it_is(running: Running) -> None:
    plan = replace(announced(20), reconciler=replace(OVERDUE, running=running))

    assert unattended(plan) is plan
