"""Replacing, pass by pass, with nodes, machines and providers in memory."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.errors import Unreachable
from reconciler.model.machine import AKS, OPENSHIFT, OPENSHIFT_MACHINE, Remove, ScaleUp
from reconciler.model.node import Condition
from reconciler.model.outcome import Result
from reconciler.model.plan import Plan
from reconciler.model.record import CaseRecord
from reconciler.model.snapshot import Ledger, Replaced
from reconciler.model.values import replace
from reconciler.passes.act import act
from reconciler.passes.assess import assess
from reconciler.passes.decide import decide
from reconciler.passes.observe import observe
from reconciler.run import PARTS
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call, ProcessKilled, SimulatedApi
from reconciler.simulation.cluster import SimulatedCluster
from tests.support import builders
from tests.support.builders import NOW, RECORD, REQUEST, codes, minutes, plan_of, settings
from tests.support.searching import kills
from tests.support.worlds import carry_on, in_pool, look, world_of

REPLACES = "budget: {maxUnavailable: 1}\nevents: {Redeploy: {replace: true}}\n"
SURGES = f"{REPLACES}replace: {{surge: true}}\n"
FAR = '{"kind":"Redeploy","notBefore":"2026-11-22T12:00:00Z"}'
SOON = '{"kind":"Redeploy"}'


class Fleet:
    """A world with machines, and passes over it."""

    def __init__(
        self, *names: str, text: str = REPLACES, provider: str = OPENSHIFT, scales: bool = True
    ) -> None:
        self.world = world_of()
        self.machines, self.pool = in_pool(self.world, *names, provider=provider, scales=scales)
        for name in names:
            self.cluster.add_pod(builders.pod(f"web-{name}", name))
        self.settings: Settings = settings(text)

    @property
    def cluster(self) -> SimulatedCluster:
        return self.world.cluster

    @property
    def api(self) -> SimulatedApi:
        return self.world.api

    def ask(self, name: str, request: str | None = SOON) -> None:
        self.cluster.annotate(name, REQUEST, request)

    def look(self, wait: timedelta = timedelta()) -> Plan:
        """A pass after so long, and what its drains do."""
        self.world.advance(wait)
        plan, self.outcomes = look(self.world, self.settings)
        carry_on(self.world)
        return plan

    def settle(self, most: int = 6) -> Plan:
        """Passes at this moment until one asks for no write."""
        for _ in range(most):
            before = self.api.writes
            plan = self.look()
            if self.api.writes == before:
                return plan
        raise AssertionError(f"still writing: {self.api.done[-1]}")

    def record(self, name: str = "a") -> CaseRecord | None:
        node = self.cluster.nodes[name]
        return builders.case_of(node) if RECORD in node.annotations else None

    def reasons(self, name: str = "a") -> dict[str, str]:
        return {hold.code: hold.reason for hold in plan_of(self.settle(), name).holds}


def test_a_drained_node_s_machine_is_deleted_and_the_pool_brings_a_new_one() -> None:
    fleet = Fleet("a", "b")
    fleet.ask("a")
    fleet.settle()

    assert [type(one) for one in fleet.machines.asked] == [Remove]
    assert fleet.record() is not None
    fleet.machines.step()
    assert sorted(fleet.cluster.nodes) == ["b", "np-new-1"]
    assert fleet.settle().nodes == ()


def test_nothing_is_asked_before_the_last_pod_has_gone() -> None:
    fleet = Fleet("a")
    fleet.cluster.clear_node("a", builders.pod("slow", "a", deleting_until=NOW + minutes(5)))
    fleet.ask("a")
    fleet.settle()
    assert fleet.machines.asked == []

    fleet.cluster.clear_node("a")
    fleet.look()
    fleet.settle()
    assert [type(one) for one in fleet.machines.asked] == [Remove]


def test_by_default_nothing_is_replaced_and_no_provider_is_queried() -> None:
    fleet = Fleet("a", text="budget: {maxUnavailable: 1}")
    fleet.machines.out_of_order = "was asked"
    fleet.ask("a")
    plan = fleet.settle()

    assert fleet.machines.asked == []
    assert not any("was asked" in hold.reason for hold in plan_of(plan).holds)


def test_the_request_is_recorded_before_it_is_sent() -> None:
    fleet = Fleet("a")
    fleet.ask("a")
    fleet.settle()
    (action,) = fleet.machines.asked
    place = next(n for n, write in enumerate(fleet.api.done) if write.content is action)
    patch = [write for write in fleet.api.done[:place] if write.what == "patch_node"][-1]

    assert '"offer":"replace"' in str(patch.content)
    assert any(write.what == "write_ledger" for write in fleet.api.done[:place])


def test_the_place_of_a_node_that_was_replaced_is_held_until_the_new_one_is_there() -> None:
    fleet = Fleet("a", "b", "c")
    fleet.ask("a")
    fleet.settle()
    fleet.ask("b")
    fleet.pool.members.remove("a")
    fleet.cluster.delete_node("a")
    plan = fleet.settle()

    assert [hold.code for hold in plan_of(plan, "b").holds] == ["budgetLeft"]
    assert plan.budget.holders == (("a", "replaced by us; the new node is missing"),)
    fleet.machines.step()
    assert [one.name for one in fleet.cluster.nodes.values() if one.unschedulable] == []
    assert fleet.look().budget.holders == (("b", "ours, starting"),)


def test_a_replacement_that_never_comes_holds_no_place_for_ever() -> None:
    fleet = Fleet("a", "b")
    fleet.ask("a")
    fleet.settle()
    fleet.ask("b")
    fleet.pool.members.remove("a")
    fleet.cluster.delete_node("a")
    plan = fleet.settle()
    assert plan.next_change is not None
    assert plan.next_change <= NOW + minutes(30)

    assert plan_of(fleet.look(minutes(30)), "b").starts


def test_a_pass_is_planned_for_when_a_replaced_node_no_longer_holds_its_place() -> None:
    gone = Replaced("z", "uid-z", "", "np", 2, NOW - minutes(10))
    chosen = settings("budget: {maxUnavailable: 1, ignore: {notReadyFor: 30m}}")
    seen = builders.snapshot(builders.node(pool="np"), ledger=Ledger(replaced=(gone,)))

    assert builders.planned(seen, chosen).next_change == NOW + minutes(20)


def test_whose_machine_is_being_deleted_is_not_uncordoned() -> None:
    fleet = Fleet("a", "b")
    fleet.ask("a")
    fleet.settle()
    fleet.ask("a", None)
    for _ in range(4):
        plan = fleet.look(minutes(10))
        assert fleet.cluster.nodes["a"].unschedulable
    assert "offerAnswered" in codes(plan_of(plan))


def test_a_deletion_that_was_refused_is_tried_again_and_given_up_with_the_event() -> None:
    fleet = Fleet("a", "b")
    fleet.machines.refuse = True
    fleet.ask("a")
    fleet.look()
    fleet.look()
    fleet.look()
    assert [one.result for one in fleet.outcomes if one.action == "replace machine"] == [Result.FAILED]
    assert "deletion of its machine was requested" in fleet.reasons()["offerDue"]

    held = plan_of(fleet.settle())
    until = next(hold.until for hold in held.holds if hold.code == "offerDue")
    assert until == NOW + minutes(2)
    fleet.look(minutes(2))
    record = fleet.record()
    assert record is not None
    (asked,) = record.asked
    assert (asked.offer, asked.attempts) == ("replace", 2)
    fleet.ask("a", None)
    for _ in range(3):
        fleet.look(minutes(5))
    assert not fleet.cluster.nodes["a"].unschedulable
    assert fleet.record() is None


@pytest.mark.parametrize("label", ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"])
def test_a_control_plane_node_is_only_reported(label: str) -> None:
    fleet = Fleet("a", "b", text=SURGES)
    fleet.cluster.label("a", label, "")
    fleet.ask("a")

    assert "never replaced" in fleet.reasons()["offerDue"]
    assert fleet.machines.asked == []


def test_a_machine_that_says_it_is_of_the_control_plane_is_only_reported() -> None:
    fleet = Fleet("a", "b")
    fleet.machines.control_plane.add("a")
    fleet.ask("a")

    assert "never replaced" in fleet.reasons()["offerDue"]
    assert fleet.machines.asked == []


def test_a_machine_that_nothing_would_bring_back_stays() -> None:
    fleet = Fleet("a", "b")
    fleet.pool.members.clear()
    fleet.ask("a")

    assert "nothing would create a new machine" in fleet.reasons()["offerDue"]
    assert fleet.machines.asked == []


def test_a_node_without_a_machine_provider_stays() -> None:
    fleet = Fleet("a", "b")
    fleet.cluster.annotate("a", OPENSHIFT_MACHINE, None)
    fleet.ask("a")

    assert "the node does not name a machine provider" in fleet.reasons()["offerDue"]


def test_a_machine_provider_that_can_t_be_read_is_unknown_and_reported() -> None:
    fleet = Fleet("a", "b")
    fleet.machines.out_of_order = "machines.machine.openshift.io is forbidden"
    fleet.ask("a")

    assert "machines.machine.openshift.io is forbidden" in fleet.reasons()["offerDue"]


def test_an_event_that_goes_before_the_deletion_ends_the_case_as_ever() -> None:
    fleet = Fleet("a", "b")
    fleet.machines.out_of_order = "out of order"
    fleet.ask("a")
    fleet.settle()
    fleet.ask("a", None)
    for _ in range(3):
        fleet.look(minutes(5))

    assert not fleet.cluster.nodes["a"].unschedulable
    assert fleet.record() is None


# An agent pool: deleting lowers it.


def test_an_agent_pool_is_asked_for_one_more_first_and_has_as_many_as_before_in_the_end() -> None:
    fleet = Fleet("a", "b", provider=AKS)
    fleet.ask("a")
    fleet.settle()
    assert [type(one) for one in fleet.machines.asked] == [ScaleUp]
    assert "must have 3 machines before this one is deleted" in fleet.reasons()["offerDue"]

    fleet.machines.step()
    fleet.settle()
    assert [type(one) for one in fleet.machines.asked] == [ScaleUp, Remove]
    fleet.machines.step()
    assert fleet.pool.wanted == 2
    assert sorted(fleet.cluster.nodes) == ["b", "np-new-1"]


def test_an_agent_pool_s_autoscaler_is_trusted_where_the_settings_say_so() -> None:
    text = f"{REPLACES}replace: {{aks: {{count: TrustAutoscaler}}}}\n"
    fleet = Fleet("a", "b", text=text, provider=AKS)
    fleet.ask("a")
    fleet.settle()

    assert [type(one) for one in fleet.machines.asked] == [Remove]


def test_an_agent_pool_with_an_autoscaler_is_left_to_it() -> None:
    fleet = Fleet("a", "b", provider=AKS, scales=False)
    fleet.ask("a")
    fleet.settle()

    assert [type(one) for one in fleet.machines.asked] == [Remove]


def test_a_pool_that_is_busy_is_waited_for() -> None:
    fleet = Fleet("a", "b", provider=AKS)
    fleet.pool.busy = "agent pool np is Upgrading"
    fleet.ask("a")
    assert fleet.reasons()["offerDue"] == "agent pool np is Upgrading"
    assert fleet.machines.asked == []

    fleet.pool.busy = ""
    fleet.settle()
    assert [type(one) for one in fleet.machines.asked] == [ScaleUp]


def test_of_one_pool_one_node_at_a_time_is_raised_for() -> None:
    text = REPLACES.replace("maxUnavailable: 1", "maxUnavailable: 2")
    fleet = Fleet("a", "b", "c", text=text, provider=AKS)
    fleet.ask("a")
    fleet.ask("b")
    fleet.settle()
    assert [(type(one), one.node) for one in fleet.machines.asked] == [(ScaleUp, "a")]
    assert "node a goes first" in fleet.reasons("b")["offerDue"]

    fleet.machines.step()
    fleet.settle()
    fleet.machines.step()
    fleet.settle()
    assert [(type(one), one.node) for one in fleet.machines.asked][1:] == [(Remove, "a"), (ScaleUp, "b")]


# Surge: the new one first.


def test_with_surge_the_new_machine_is_ready_before_the_old_node_is_drained() -> None:
    fleet = Fleet("a", "b", text=SURGES)
    fleet.ask("a", FAR)
    plan = fleet.settle()
    assert [type(one) for one in fleet.machines.asked] == [ScaleUp]
    assert "offerAnswered" in codes(plan_of(plan))
    assert not fleet.cluster.nodes["a"].unschedulable

    fleet.machines.step(ready=False)
    fleet.settle()
    assert not fleet.cluster.nodes["a"].unschedulable
    fleet.cluster.set_condition("np-new-1", Condition("Ready", "True"))
    fleet.settle()
    assert fleet.cluster.nodes["a"].unschedulable
    assert [type(one) for one in fleet.machines.asked] == [ScaleUp, Remove]

    fleet.machines.step()
    assert fleet.pool.wanted == 2
    assert sorted(fleet.cluster.nodes) == ["b", "np-new-1"]
    assert fleet.settle().budget.holders == ()


def test_the_deadline_does_not_wait_for_the_replacement() -> None:
    fleet = Fleet("a", "b", text=SURGES)
    fleet.ask("a", FAR)
    held = plan_of(fleet.settle())
    due = NOW + timedelta(days=1) - minutes(15)
    assert [hold.until for hold in held.holds if hold.code == "offerAnswered"] == [due]
    fleet.world.clock.advance(due)

    assert fleet.look().nodes[0].starts


def test_with_surge_a_drain_without_a_date_waits_for_its_replacement_too() -> None:
    fleet = Fleet("a", "b", text=SURGES)
    fleet.ask("a", SOON)
    assert "offerAnswered" in codes(plan_of(fleet.settle()))


def test_what_is_due_now_waits_for_no_replacement() -> None:
    fleet = Fleet("a", "b", text=SURGES.replace("Redeploy:", "Preempt: {replace: true}, Redeploy:"))
    fleet.ask("a", '{"kind":"Preempt"}')

    assert plan_of(fleet.look()).starts


def test_a_pool_that_is_not_ours_to_scale_is_not_waited_for() -> None:
    fleet = Fleet("a", "b", text=SURGES, scales=False)
    fleet.ask("a", FAR)
    fleet.settle()

    assert [type(one) for one in fleet.machines.asked] == [Remove]


def test_a_case_that_ends_before_its_drain_says_that_a_machine_is_left_over() -> None:
    fleet = Fleet("a", "b", text=SURGES)
    fleet.ask("a", FAR)
    fleet.settle()
    fleet.ask("a", None)
    plan = fleet.look()

    assert [notice.reason for notice in plan_of(plan).todo.notices] == ["MaintenanceSurplus"]
    assert fleet.record() is None
    assert fleet.settle().nodes == ()


def test_a_raise_that_the_pool_refused_is_asked_for_again() -> None:
    fleet = Fleet("a", "b", text=SURGES)
    fleet.machines.refuse = True
    fleet.ask("a", FAR)
    fleet.settle()
    assert fleet.machines.asked == []
    fleet.machines.refuse = False
    fleet.settle()
    assert fleet.machines.asked == []

    fleet.look(minutes(2))
    assert [type(one) for one in fleet.machines.asked] == [ScaleUp]


@pytest.mark.heavy
@pytest.mark.parametrize("text", [REPLACES, SURGES])
@pytest.mark.parametrize("provider", [AKS, OPENSHIFT], ids=["agent pool", "machine set"])
@pytest.mark.parametrize("when", ["before_write", "after_write"])
def test_killed_at_any_write_the_pool_ends_as_it_began(text: str, provider: str, when: str) -> None:
    def run(kill_at: int | None) -> tuple[Fleet, int]:
        fleet = Fleet("a", "b", text=text, provider=provider)
        count = 0

        def hook(write: Call) -> None:
            nonlocal count
            count += 1
            if count == kill_at:
                raise ProcessKilled(write.what)

        setattr(fleet.api, when, hook)
        fleet.ask("a", FAR)
        for _ in range(14):
            try:
                fleet.look(minutes(2))
            except ProcessKilled:
                fleet.world.restart()
            fleet.machines.step()
        return fleet, count

    _, writes = run(None)
    assert writes > 5
    for kill_at in kills(writes):
        fleet, _ = run(kill_at)
        assert "a" not in fleet.cluster.nodes, kill_at
        assert len(fleet.cluster.nodes) == len(fleet.pool.members) == fleet.pool.wanted == 2, kill_at


def test_without_the_ledger_no_machine_goes_and_with_it_the_next_pass_deletes_it() -> None:
    fleet = Fleet("a", "b")

    def refuse(write: Call) -> None:
        if write.what == "write_ledger":
            raise Unreachable("no ConfigMap today")

    fleet.api.before_write = refuse
    fleet.ask("a")
    for _ in range(4):
        fleet.look()
    assert fleet.machines.asked == []
    record = fleet.record()
    assert record is not None
    assert record.asked == ()

    fleet.api.before_write = None
    fleet.settle()
    assert [type(one) for one in fleet.machines.asked] == [Remove]


def test_a_process_without_machine_providers_leaves_the_request_to_another() -> None:
    fleet = Fleet("a", "b")
    fleet.ask("a")
    fleet.look()
    fleet.look()
    plan = decide_now(fleet)
    outcomes = act(plan, replace(fleet.world.outside, machines=None))

    assert [one.result for one in outcomes if one.action == "replace machine"] == [Result.LATER]


def decide_now(fleet: Fleet) -> Plan:
    seen = observe(fleet.world.outside, fleet.settings, fleet.world.now, PARTS)
    seen = replace(seen, drains=fleet.world.drainer.progress())
    found = assess(seen, fleet.world.now)
    return decide(seen, found, fleet.settings, fleet.world.now, PARTS)


def test_a_post_drain_hook_holds_the_deletion_of_the_machine() -> None:
    fleet = Fleet("a", "b")
    hook = f"{builders.PREFIX}/post-drain.flash"
    fleet.cluster.annotate("a", hook, "team")
    fleet.ask("a")
    fleet.settle()
    assert (fleet.machines.asked, "postDrainHooksDone" in fleet.reasons()) == ([], True)
    fleet.cluster.annotate("a", hook, None)
    fleet.settle()

    assert [type(one) for one in fleet.machines.asked] == [Remove]


def test_machines_are_read_of_the_nodes_that_are_replaced_and_of_no_other() -> None:
    text = REPLACES.replace("1", "3")
    fleet = Fleet("a", "b", "c", "d", text=text)
    fleet.ask("a")
    fleet.settle()
    assert [type(one) for one in fleet.machines.asked] == [Remove]
    # Its event is gone, but its machine is on its way out.
    fleet.ask("a", None)
    fleet.ask("b", '{"kind":"Reboot"}')
    fleet.ask("c", FAR)

    def read(chosen: Settings) -> set[str]:
        seen = observe(fleet.world.outside, chosen, fleet.world.now, PARTS)
        return set(seen.for_settings.machines)

    assert read(fleet.settings) == {"a", "c"}
    assert read(settings("budget: {maxUnavailable: 3}")) == {"a"}
