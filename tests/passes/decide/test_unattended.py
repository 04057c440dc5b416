"""Cases whose end nothing may report: they stay as they are, and the hold says how a person ends them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.plan import Plan
from reconciler.model.snapshot import Agents
from reconciler.passes.release import release
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import IMDS, PREFIX, codes, node, plan_of
from tests.support.worlds import world_of

INSTALLED = Agents(installed=True)
NIGHT = 'windows: [{name: night, start: "22:00", end: "23:00"}]'
REBOOT = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Scheduled"}
KEPT = "the annotation node-maintenance.dev/imds stays in force: remove it if no agent runs"
GONE = "if it is over, run reconciler release a"


def _history(text: str = "", *, stuck: bool = False) -> History:
    """A node with a case about an event that the node agent published; a `stuck` pod stays on it."""
    nodes = [builders.on_vm(node("a"), 0), node("b")]
    history = History(world_of(nodes, [builders.pod("web", "a")]), builders.settings(text))
    if stuck:
        history.cluster.finalizers.add("uid-shop-web")
    history.cluster.annotate("a", IMDS, builders.published(REBOOT, vm=builders.vm_name(0)))
    history.until_still()
    return history


def _remedies(plan: Plan) -> list[str]:
    return [hold.reason for hold in plan_of(plan).holds if hold.code == "endReported"]


def test_a_case_without_an_agent_waits_until_a_person_ends_it_as_its_hold_says() -> None:
    history = _history()
    history.cluster.agents = Agents()
    for _ in range(3):
        history.wait(timedelta(days=7))
        plan = history.until_still()
        assert history.cluster.nodes["a"].unschedulable
        (kept,) = _remedies(plan)
        assert KEPT in kept

    history.cluster.annotate("a", IMDS, None)
    plan = history.until_still()
    assert history.cluster.nodes["a"].unschedulable
    (gone,) = _remedies(plan)
    assert gone.endswith(GONE)
    assert KEPT not in gone
    write = release(history.cluster.nodes["a"], PREFIX, reset=False)
    assert write is not None
    history.world.outside.writer.patch_node(write)
    plan = history.until_still()

    assert not history.cluster.nodes["a"].unschedulable
    assert [one for one in plan.nodes if one.node == "a"] == []


def test_a_case_that_has_not_begun_says_so_too_once_no_event_is_reported() -> None:
    history = _history(NIGHT)
    history.cluster.agents = Agents()
    plan = history.until_still()
    assert codes(plan_of(plan)) == {"windowOpen"}
    history.cluster.annotate("a", IMDS, None)
    plan = history.until_still()

    assert [one.endswith(GONE) for one in _remedies(plan)] == [True]


@pytest.mark.parametrize("agents", [INSTALLED, Agents(installed=True, problem="403")])
def test_an_agent_that_may_report_the_end_is_waited_for(agents: Agents) -> None:
    history = _history()
    history.cluster.agents = agents
    plan = history.until_still()

    assert codes(plan_of(plan)) == {"eventsGone"}


def test_a_drain_that_runs_needs_no_such_advice() -> None:
    history = _history(stuck=True)
    history.cluster.agents = Agents()
    plan = plan_of(history.until_still())

    assert plan.todo.drain is not None
    assert "endReported" not in codes(plan)
