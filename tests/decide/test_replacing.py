"""Replacing, pass by pass: nodes and machines in memory, made by whoever makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.act import act
from reconciler.assess import assess
from reconciler.decide import decide
from reconciler.errors import Unreachable
from reconciler.machines import aks
from reconciler.model.machine import Remove, ScaleUp
from reconciler.model.outcome import Result
from reconciler.model.plan import Plan
from reconciler.model.record import CaseRecord
from reconciler.observe import observe
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import NOW, RECORD, REQUEST, codes, minutes, plan_of, settings
from tests.support.fakes.cluster import FakeCluster, FakeDrains, Killed, Write, one_pass, outside_of
from tests.support.fakes.machines import FakePool, in_pool

REPLACES = "budget: {maxUnavailable: 1}\nevents: {Redeploy: {replace: true}}\n"
SURGES = f"{REPLACES}replace: {{surge: true}}\n"
FAR = '{"kind":"Redeploy","notBefore":"2026-11-22T12:00:00Z"}'
SOON = '{"kind":"Redeploy"}'


class World:
    """A cluster with machines, and passes over it."""

    def __init__(
        self,
        *names: str,
        text: str = REPLACES,
        change: Callable[[FakePool], None] = lambda pool: None,
    ) -> None:
        self.cluster = FakeCluster()
        self.machines, self.pool = in_pool(self.cluster, *names, change=change)
        for name in names:
            self.cluster.pods_on[name] = [builders.pod(f"web-{name}", name)]
        self.drains = FakeDrains(self.cluster)
        self.settings: Settings = settings(text)
        self.now: datetime = NOW

    def ask(self, name: str, request: str | None = SOON) -> None:
        self.cluster.annotate(name, REQUEST, request)

    def look(self, wait: timedelta = timedelta()) -> Plan:
        """A pass after so long, and what its drains do."""
        self.now += wait
        plan, self.outcomes = one_pass(
            self.cluster, self.drains, self.settings, self.now, machines=self.machines
        )
        self.drains.carry_on(self.now)
        return plan

    def settle(self, most: int = 6) -> Plan:
        """Passes at this moment until one writes nothing."""
        for _ in range(most):
            before = len(self.cluster.writes)
            plan = self.look()
            if len(self.cluster.writes) == before:
                return plan
        raise AssertionError(f"still writing: {self.cluster.writes[-1]}")

    def record(self, name: str = "a") -> CaseRecord | None:
        node = self.cluster.objects[name]
        return builders.case_of(node) if RECORD in node.annotations else None

    def reasons(self, name: str = "a") -> dict[str, str]:
        return {hold.code: hold.reason for hold in plan_of(self.settle(), name).holds}


def of_aks(pool: FakePool) -> None:
    pool.provider = aks.NAME


def test_a_drained_node_s_machine_is_deleted_and_the_pool_brings_a_new_one() -> None:
    world = World("a", "b")
    world.ask("a")
    world.settle()

    assert [type(one) for one in world.machines.asked] == [Remove]
    assert world.record() is not None
    world.machines.step()
    assert sorted(world.cluster.objects) == ["b", "np-new-1"]
    assert world.settle().nodes == ()


def test_nothing_is_asked_before_the_last_pod_has_gone() -> None:
    world = World("a")
    world.cluster.pods_on["a"] = [builders.pod("slow", "a", deleting_until=NOW + minutes(5))]
    world.ask("a")
    world.settle()
    assert world.machines.asked == []

    world.cluster.pods_on["a"] = []
    world.look()
    world.settle()
    assert [type(one) for one in world.machines.asked] == [Remove]


def test_by_default_nothing_is_replaced_nor_anybody_asked() -> None:
    world = World("a", text="budget: {maxUnavailable: 1}")
    world.machines.out_of_order = "was asked"
    world.ask("a")
    plan = world.settle()

    assert world.machines.asked == []
    assert not any("was asked" in hold.reason for hold in plan_of(plan).holds)


def test_the_record_says_so_before_anybody_is_asked() -> None:
    world = World("a")
    world.ask("a")
    world.settle()
    (action,) = world.machines.asked
    place = next(n for n, write in enumerate(world.cluster.writes) if write.what is action)
    patch = [write for write in world.cluster.writes[:place] if write.verb == "patch"][-1]

    assert '"removals":1' in str(patch.what)
    assert any(write.verb == "ledger" for write in world.cluster.writes[:place])


def test_the_place_of_a_node_that_was_replaced_is_held_until_the_new_one_is_there() -> None:
    world = World("a", "b", "c")
    world.ask("a")
    world.settle()
    world.ask("b")
    world.pool.members.remove("a")
    world.cluster.objects.pop("a")
    plan = world.settle()

    assert [hold.code for hold in plan_of(plan, "b").holds] == ["budgetLeft"]
    assert plan.budget.holders == (("a", "replaced by us: the new node is still to come"),)
    world.machines.step()
    assert [one.name for one in world.cluster.objects.values() if one.unschedulable] == []
    assert world.look().budget.holders == (("b", "ours, starting"),)


def test_a_replacement_that_never_comes_holds_no_place_for_ever() -> None:
    world = World("a", "b")
    world.ask("a")
    world.settle()
    world.ask("b")
    world.pool.members.remove("a")
    world.cluster.objects.pop("a")
    plan = world.settle()
    assert plan.next_change is not None
    assert plan.next_change <= NOW + minutes(30)

    assert plan_of(world.look(minutes(30)), "b").starts


def test_whose_machine_is_being_deleted_is_not_uncordoned() -> None:
    world = World("a", "b")
    world.ask("a")
    world.settle()
    world.ask("a", None)
    for _ in range(4):
        plan = world.look(minutes(10))
        assert world.cluster.objects["a"].unschedulable
    assert "machineStays" in codes(plan_of(plan))


def test_a_deletion_that_was_refused_is_tried_again_and_given_up_with_the_event() -> None:
    world = World("a", "b")
    world.machines.refuse = True
    world.ask("a")
    world.look()
    world.look()
    world.look()
    assert [one.result for one in world.outcomes if one.action == "replace machine"] == [Result.FAILED]
    assert "asked to be deleted" in world.reasons()["replaceDue"]

    held = plan_of(world.settle())
    until = next(hold.until for hold in held.holds if hold.code == "replaceDue")
    assert until == NOW + minutes(2)
    world.look(minutes(2))
    record = world.record()
    assert record is not None
    assert record.replacement is not None
    assert record.replacement.removals == 2
    world.ask("a", None)
    for _ in range(3):
        world.look(minutes(5))
    assert not world.cluster.objects["a"].unschedulable
    assert world.record() is None


@pytest.mark.parametrize("label", ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"])
def test_a_control_plane_node_is_only_reported(label: str) -> None:
    world = World("a", "b", text=SURGES)
    world.cluster.change("a", labels={**world.cluster.objects["a"].labels, label: ""})
    world.ask("a")

    assert "never replaced" in world.reasons()["replaceDue"]
    assert world.machines.asked == []


def test_a_machine_that_says_it_is_of_the_control_plane_is_only_reported() -> None:
    world = World("a", "b")
    world.machines.control_plane.add("a")
    world.ask("a")

    assert "never replaced" in world.reasons()["replaceDue"]
    assert world.machines.asked == []


def test_a_machine_that_nothing_would_bring_back_stays() -> None:
    world = World("a", "b")
    world.pool.members.clear()
    world.ask("a")

    assert "nothing would bring a new machine" in world.reasons()["replaceDue"]
    assert world.machines.asked == []


def test_a_node_that_nobody_owns_stays() -> None:
    world = World("a", "b")
    world.cluster.change("a", annotations={})
    world.ask("a")

    assert "nothing on the node says who owns its VM" in world.reasons()["replaceDue"]


def test_a_maker_that_can_t_be_asked_is_unknown_and_said() -> None:
    world = World("a", "b")
    world.machines.out_of_order = "machines.machine.openshift.io is forbidden"
    world.ask("a")

    assert "machines.machine.openshift.io is forbidden" in world.reasons()["replaceDue"]


def test_an_event_that_goes_before_the_deletion_ends_the_case_as_ever() -> None:
    world = World("a", "b")
    world.machines.out_of_order = "out of order"
    world.ask("a")
    world.settle()
    world.ask("a", None)
    for _ in range(3):
        world.look(minutes(5))

    assert not world.cluster.objects["a"].unschedulable
    assert world.record() is None


# An agent pool: deleting lowers it.


def test_an_agent_pool_is_asked_for_one_more_first_and_has_as_many_as_before_in_the_end() -> None:
    world = World("a", "b", change=of_aks)
    world.ask("a")
    world.settle()
    assert [type(one) for one in world.machines.asked] == [ScaleUp]
    assert "is to have 3 machines before this one goes" in world.reasons()["replaceDue"]

    world.machines.step()
    world.settle()
    assert [type(one) for one in world.machines.asked] == [ScaleUp, Remove]
    world.machines.step()
    assert world.pool.wanted == 2
    assert sorted(world.cluster.objects) == ["b", "np-new-1"]


def test_an_agent_pool_s_autoscaler_is_trusted_where_the_settings_say_so() -> None:
    text = f"{REPLACES}replace: {{aks: {{count: TrustAutoscaler}}}}\n"
    world = World("a", "b", text=text, change=of_aks)
    world.ask("a")
    world.settle()

    assert [type(one) for one in world.machines.asked] == [Remove]


def test_an_agent_pool_with_an_autoscaler_is_left_to_it() -> None:
    def autoscaled(pool: FakePool) -> None:
        of_aks(pool)
        pool.scales = False

    world = World("a", "b", change=autoscaled)
    world.ask("a")
    world.settle()

    assert [type(one) for one in world.machines.asked] == [Remove]


def test_a_pool_that_is_busy_is_waited_for() -> None:
    world = World("a", "b", change=of_aks)
    world.pool.busy = "agent pool np is Upgrading"
    world.ask("a")
    assert world.reasons()["replaceDue"] == "agent pool np is Upgrading"
    assert world.machines.asked == []

    world.pool.busy = ""
    world.settle()
    assert [type(one) for one in world.machines.asked] == [ScaleUp]


def test_of_one_pool_one_node_at_a_time_is_raised_for() -> None:
    text = REPLACES.replace("maxUnavailable: 1", "maxUnavailable: 2")
    world = World("a", "b", "c", text=text, change=of_aks)
    world.ask("a")
    world.ask("b")
    world.settle()
    assert [(type(one), one.node) for one in world.machines.asked] == [(ScaleUp, "a")]
    assert "node a goes first" in world.reasons("b")["replaceDue"]

    world.machines.step()
    world.settle()
    world.machines.step()
    world.settle()
    assert [(type(one), one.node) for one in world.machines.asked][1:] == [(Remove, "a"), (ScaleUp, "b")]


# Surge: the new one first.


def test_with_surge_the_new_machine_is_ready_before_the_old_node_is_drained() -> None:
    world = World("a", "b", text=SURGES)
    world.ask("a", FAR)
    plan = world.settle()
    assert [type(one) for one in world.machines.asked] == [ScaleUp]
    assert "replacementReady" in codes(plan_of(plan))
    assert not world.cluster.objects["a"].unschedulable

    world.machines.step(ready=False)
    world.settle()
    assert not world.cluster.objects["a"].unschedulable
    world.cluster.put(
        *(replace(one, conditions=builders.node().conditions) for one in [world.cluster.objects["np-new-1"]])
    )
    world.settle()
    assert world.cluster.objects["a"].unschedulable
    assert [type(one) for one in world.machines.asked] == [ScaleUp, Remove]

    world.machines.step()
    assert world.pool.wanted == 2
    assert sorted(world.cluster.objects) == ["b", "np-new-1"]
    assert world.settle().budget.holders == ()


def test_the_deadline_does_not_wait_for_the_replacement() -> None:
    world = World("a", "b", text=SURGES)
    world.ask("a", FAR)
    held = plan_of(world.settle())
    due = NOW + timedelta(days=1) - minutes(15)
    assert [hold.until for hold in held.holds if hold.code == "replacementReady"] == [due]
    world.now = due

    assert world.look().nodes[0].starts


def test_with_surge_a_drain_without_a_date_waits_for_its_replacement_too() -> None:
    world = World("a", "b", text=SURGES)
    world.ask("a", SOON)
    assert "replacementReady" in codes(plan_of(world.settle()))


def test_what_is_due_now_waits_for_no_replacement() -> None:
    world = World("a", "b", text=SURGES.replace("Redeploy:", "Preempt: {replace: true}, Redeploy:"))
    world.ask("a", '{"kind":"Preempt"}')

    assert plan_of(world.look()).starts


def test_a_pool_that_is_not_ours_to_scale_is_not_waited_for() -> None:
    def autoscaled(pool: FakePool) -> None:
        pool.scales = False

    world = World("a", "b", text=SURGES, change=autoscaled)
    world.ask("a", FAR)
    world.settle()

    assert [type(one) for one in world.machines.asked] == [Remove]


def test_a_case_that_ends_before_its_drain_says_that_a_machine_is_left_over() -> None:
    world = World("a", "b", text=SURGES)
    world.ask("a", FAR)
    world.settle()
    world.ask("a", None)
    plan = world.look()

    assert [notice.reason for notice in plan_of(plan).todo.notices] == ["MaintenanceSurplus"]
    assert world.record() is None
    assert world.settle().nodes == ()


def test_a_raise_that_the_pool_refused_is_asked_for_again() -> None:
    world = World("a", "b", text=SURGES)
    world.machines.refuse = True
    world.ask("a", FAR)
    world.settle()
    assert world.machines.asked == []
    world.machines.refuse = False
    world.settle()
    assert world.machines.asked == []

    world.look(minutes(2))
    assert [type(one) for one in world.machines.asked] == [ScaleUp]


@pytest.mark.parametrize("text", [REPLACES, SURGES])
@pytest.mark.parametrize("change", [of_aks, lambda pool: None], ids=["agent pool", "machine set"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_write_the_pool_ends_as_it_began(
    text: str, change: Callable[[FakePool], None], when: str
) -> None:
    def run(kill_at: int | None) -> tuple[World, int]:
        world = World("a", "b", text=text, change=change)
        count = 0

        def hook(write: Write) -> None:
            nonlocal count
            count += 1
            if count == kill_at:
                raise Killed(write.verb)

        setattr(world.cluster, when, hook)
        world.ask("a", FAR)
        for _ in range(14):
            try:
                world.look(minutes(2))
            except Killed:
                world.drains = FakeDrains(world.cluster)
            world.machines.step()
        return world, count

    _, writes = run(None)
    assert writes > 5
    for kill_at in range(1, writes + 1):
        world, _ = run(kill_at)
        assert "a" not in world.cluster.objects, kill_at
        assert len(world.cluster.objects) == len(world.pool.members) == world.pool.wanted == 2, kill_at


def test_without_the_ledger_no_machine_goes_and_with_it_the_next_pass_deletes_it() -> None:
    world = World("a", "b")

    def refuse(write: Write) -> None:
        if write.verb == "ledger":
            raise Unreachable("no ConfigMap today")

    world.cluster.before = refuse
    world.ask("a")
    for _ in range(4):
        world.look()
    assert world.machines.asked == []
    record = world.record()
    assert record is not None
    assert record.replacement is None

    world.cluster.before = lambda write: None
    world.settle()
    assert [type(one) for one in world.machines.asked] == [Remove]


def test_a_process_that_asks_nobody_leaves_it_to_another() -> None:
    world = World("a", "b")
    world.ask("a")
    world.look()
    world.look()
    plan = decide_now(world)
    outcomes = act(plan, outside_of(world.cluster, world.drains))

    assert [one.result for one in outcomes if one.action == "replace machine"] == [Result.LATER]


def decide_now(world: World) -> Plan:
    seen = observe(
        outside_of(world.cluster, world.drains, machines=world.machines),
        world.settings,
        world.now,
        drains=world.drains.progress(),
    )
    found = assess(seen, world.settings.sources.node_conditions.stale_after, world.now)
    return decide(seen, found, world.settings, world.now)
