"""An early start is only for a case that we can end: nine days early, a node that only waits helps nobody."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.machine import AKS, OPENSHIFT_MACHINE
from reconciler.model.plan import Plan
from reconciler.model.schedule import CaseSchedule
from tests.features.machines.test_replacing import Fleet
from tests.support.builders import NOW, minutes, plan_of

DAYS = timedelta(days=9)
FAR = '{"kind":"Redeploy","notBefore":"2026-11-30T12:00:00Z"}'
IN_17_MINUTES = '{"kind":"Reboot","notBefore":"2026-11-21T12:17:00Z"}'
LABEL = "node-role.kubernetes.io/control-plane"


def _schedule(plan: Plan, name: str) -> CaseSchedule:
    schedule = plan_of(plan, name).schedule
    assert schedule is not None
    return schedule


def _control_plane(fleet: Fleet) -> None:
    fleet.cluster.label("a", LABEL, "")


def _no_provider(fleet: Fleet) -> None:
    fleet.cluster.annotate("a", OPENSHIFT_MACHINE, None)


def _nothing_creates_another(fleet: Fleet) -> None:
    fleet.pool.members.clear()


def _not_read(fleet: Fleet) -> None:
    fleet.machines.out_of_order = "machines.machine.openshift.io is forbidden"


def _busy(fleet: Fleet) -> None:
    fleet.pool.busy = "agent pool np is Upgrading"


REASONS = [
    pytest.param(_control_plane, "control-plane nodes are never replaced", id="control plane"),
    pytest.param(_no_provider, "the node does not name a machine provider", id="no provider"),
    pytest.param(_nothing_creates_another, "nothing would create a new machine", id="no pool"),
    pytest.param(_not_read, "machines.machine.openshift.io is forbidden", id="not read"),
    pytest.param(_busy, "agent pool np is Upgrading", id="busy"),
]


@pytest.mark.parametrize(("prepare", "because"), REASONS)
def test_a_node_whose_machine_can_t_be_replaced_starts_late_and_leaves_its_place(
    prepare: object, because: str
) -> None:
    fleet = Fleet("a", "b")
    assert callable(prepare)
    prepare(fleet)
    fleet.ask("a", FAR)
    fleet.settle()
    fleet.ask("b", IN_17_MINUTES)
    plan = fleet.settle()

    assert not fleet.cluster.nodes["a"].unschedulable
    assert fleet.cluster.nodes["b"].unschedulable
    schedule = _schedule(plan, "a")
    assert schedule.latest_start is not None
    assert schedule.planned_start == schedule.latest_start - timedelta(hours=1)
    assert because in schedule.ending
    assert schedule.ends is not None
    assert schedule.ends >= NOW + DAYS


def test_a_machine_that_can_be_replaced_is_replaced_early() -> None:
    fleet = Fleet("a", "b")
    fleet.ask("a", FAR)
    plan = fleet.look()

    schedule = _schedule(plan, "a")
    assert fleet.cluster.nodes["a"].unschedulable
    assert schedule.ends is not None
    assert schedule.ends < NOW + timedelta(hours=1)
    assert schedule.ending == "once the node is drained, its machine is replaced"


def test_a_policy_that_says_early_by_name_starts_early_and_knows_when_the_node_comes_back() -> None:
    fleet = Fleet("a", "b", text="events: {Redeploy: {replace: true, start: Early}}")
    _control_plane(fleet)
    fleet.ask("a", FAR)
    plan = fleet.look()

    assert fleet.cluster.nodes["a"].unschedulable
    ends = _schedule(plan, "a").ends
    assert ends is not None
    assert ends >= NOW + DAYS


@pytest.mark.parametrize(
    "text", ["budget: {maxUnavailable: 1}", "budget: {maxUnavailable: 1}\nmode: Observe"]
)
def test_nobody_knows_when_a_node_is_back_whose_event_has_no_date(text: str) -> None:
    fleet = Fleet("a", "b", text=text)
    fleet.ask("a")
    assert _schedule(fleet.look(), "a").ends is None
    assert _schedule(fleet.settle(), "a").ends is None


def test_a_machine_that_the_provider_does_not_delete_gives_its_place_back_and_is_drained_late() -> None:
    fleet = Fleet("a", "b")
    fleet.machines.refuse = True
    fleet.ask("a", FAR)
    fleet.settle()
    assert fleet.cluster.nodes["a"].unschedulable
    for _ in range(120):
        fleet.look(minutes(1))
    assert len(fleet.machines.asked) <= 5
    assert not fleet.cluster.nodes["a"].unschedulable
    began = [fleet.look(minutes(10)) for _ in range(30)]
    assert not any(plan_of(plan, "a").drain_begins for plan in began)

    fleet.ask("b", IN_17_MINUTES.replace("2026-11-21T12:17", "2026-11-22T12:00"))
    fleet.look(timedelta(hours=16))
    fleet.look(minutes(1))
    assert fleet.cluster.nodes["b"].unschedulable


def test_a_pool_that_never_grows_gives_the_place_back() -> None:
    fleet = Fleet("a", "b", provider=AKS)
    fleet.machines.refuse = True
    fleet.ask("a", FAR)
    fleet.settle()
    for _ in range(150):
        fleet.look(minutes(1))

    assert not fleet.cluster.nodes["a"].unschedulable


def test_a_case_that_was_given_back_starts_in_time() -> None:
    fleet = Fleet("a", "b")
    fleet.machines.refuse = True
    fleet.ask("a", FAR)
    fleet.settle()
    for _ in range(120):
        fleet.look(minutes(1))
    assert not fleet.cluster.nodes["a"].unschedulable
    latest = _schedule(fleet.look(), "a").latest_start
    assert latest is not None
    fleet.look(latest - timedelta(minutes=50) - fleet.world.now)

    assert fleet.cluster.nodes["a"].unschedulable
