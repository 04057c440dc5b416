"""Law 3: no start of ours raises the number of nodes out of service above the budget."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.model.machine import AKS, OPENSHIFT
from reconciler.model.node import UPGRADE_STATUS_LABEL, Condition, Node
from reconciler.model.record import Cordon, State
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws import checked
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, REQUEST, minutes
from tests.support.searching import QUARTER, examples
from tests.support.worlds import carry_on, in_pool, look, world_of

PLACES, LIMITED = Hits(), Hits()


@PLACES.at_least(50)
@LIMITED.at_least(16)
@settings(max_examples=examples(125))
@given(
    strategies.worlds(most=6, fresh=True, more=strategies.waiting_nodes, often=True),
    # Most of what else holds a start is switched off.
    strategies.policies(
        mode="Enforce",
        windows=strategies.WINDOWS[1:3],
        not_allowed=strategies.NOT_ALLOWED[:1],
        budgets=(strategies.BUDGETS[0], strategies.BUDGETS[-1], *strategies.LIMITED * 2),
    ),
)
def test_every_start_finds_a_place_in_every_limit_or_is_exempt(world: World, policy: Settings) -> None:
    fleet = dict(world.cluster.nodes)
    out = checked.out(fleet.values(), policy, NOW)
    plan, _ = look(world, policy)

    budget = policy.budget
    for node in plan.nodes:
        if not node.starts or node.node in out:
            continue
        if not checked.exempt(node, fleet[node.node], policy, NOW):
            zone = {name for name, other in fleet.items() if other.zone == node.zone}
            pool = {name for name, other in fleet.items() if other.pool == node.pool}
            PLACES.count()
            LIMITED.count(
                bool(node.zone and budget.per_zone is not None and len(zone) > 1)
                or bool(node.pool and budget.per_pool is not None and len(pool) > 1)
            )
            assert not checked.full(budget.max_unavailable, out, set(fleet))
            assert not (node.zone and checked.full(budget.per_zone, out, zone))
            assert not (node.pool and checked.full(budget.per_pool, out, pool))
        out.add(node.node)


HELD = Hits()


@HELD.at_least(50, QUARTER)
@settings(max_examples=examples(200, QUARTER))
@given(strategies.worlds(most=6, more=strategies.asking_nodes), strategies.policies())
def test_the_hold_of_the_budget_names_the_nodes_that_hold_the_places(world: World, policy: Settings) -> None:
    plan, _ = look(world, policy)

    for node in plan.nodes:
        for hold in node.holds:
            if hold.code == "budgetLeft":
                HELD.count()
                assert "so no node may start" in hold.reason or any(
                    name in hold.reason for name, _ in plan.budget.holders
                )


def test_two_nodes_never_take_the_last_place_and_the_earlier_one_gets_it() -> None:
    def asking(name: str, later: int) -> Node:
        at = (NOW + minutes(later)).isoformat()
        return builders.node(name, annotations={builders.REQUEST: f'{{"kind":"Reboot","notBefore":"{at}"}}'})

    world = world_of([asking("a", 90), asking("b", 30), asking("c", 60)])
    plan, _ = look(world, builders.settings("budget: {maxUnavailable: 1}"))

    assert [node.node for node in plan.nodes if node.starts] == ["b"]
    assert "b (ours, starting)" in next(iter(builders.plan_of(plan, "c").holds)).reason


def far(kind: str, hours: float) -> str:
    """A request for an event so many hours ahead."""
    return f'{{"kind":"{kind}","notBefore":"{(NOW + minutes(60 * hours)).isoformat()}"}}'


@pytest.mark.parametrize("kind", ["Terminate", "Preempt"])
def test_an_exempt_kind_waits_like_any_other_until_it_is_due(kind: str) -> None:
    nodes = [builders.node(f"n{number}", annotations={REQUEST: far(kind, 336)}) for number in range(10)]
    world = world_of(nodes)
    policy = builders.settings(f"budget: {{maxUnavailable: 10%}}\nevents: {{{kind}: {{start: Early}}}}")
    plan, _ = look(world, policy)

    assert [node.node for node in plan.nodes if node.starts] == ["n0"]
    due = NOW + timedelta(hours=336) - minutes(15)
    (hold,) = builders.plan_of(plan, "n1").holds
    assert (hold.code, hold.until) == ("budgetLeft", due)
    late, _ = look(world, policy, due)
    assert {node.node for node in late.nodes if node.starts} == {f"n{number}" for number in range(1, 10)}


def test_a_spot_node_with_seconds_of_notice_waits_for_no_place() -> None:
    nodes = [builders.node(f"n{number}", annotations={REQUEST: far("Preempt", 0.01)}) for number in range(3)]
    plan, _ = look(world_of(nodes), builders.settings("budget: {maxUnavailable: 1}"))

    assert [node.node for node in plan.nodes if node.starts] == ["n0", "n1", "n2"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(("Reboot", "Scheduled", 4.5), ("Reboot", "Scheduled", 4.6), id="the earlier deadline"),
        pytest.param(("Terminate", "Scheduled", 5), ("Reboot", "Scheduled", 4.58), id="the longer lead time"),
        pytest.param(("Reboot", "Scheduled", 168), ("Redeploy", "Scheduled", None), id="one with a date"),
        pytest.param(("Redeploy", "Scheduled", None), ("Reboot", "Scheduled", None), id="the worse kind"),
    ],
)
def test_the_more_urgent_node_gets_the_only_place(
    first: tuple[str, str, float | None], second: tuple[str, str, float | None]
) -> None:
    def node(number: int, event: tuple[str, str, float | None]) -> Node:
        kind, status, hours = event
        at = "" if hours is None else strategies.rfc1123(NOW + minutes(60 * hours))
        told = {"EventId": kind, "EventType": kind, "EventStatus": status, "NotBefore": at}
        published = builders.published(told, vm=builders.vm_name(number))
        return builders.on_vm(builders.node(f"n{number}", annotations={IMDS: published}), number)

    # The node that is named first has the other event, so that names decide nothing.
    world = world_of([node(0, second), node(1, first)])
    policy = builders.settings(
        "budget: {maxUnavailable: 1, exempt: []}\n"
        "events: {Terminate: {leadTime: 4h, start: Early}, Reboot: {start: Early}}"
    )
    plan, _ = look(world, policy)

    assert [one.node for one in plan.nodes] == ["n1", "n0"]
    assert [one.node for one in plan.nodes if one.starts] == ["n1"]


def struck_and(other: str, hours: float) -> World:
    """Node a has a Reboot that has started, node b an event in so many hours; the platform reports both."""
    nodes = []
    for number, (kind, status, at) in enumerate((("Reboot", "Started", 0.0), (other, "Scheduled", hours))):
        date = strategies.rfc1123(NOW + minutes(60 * at)) if at else ""
        told = {"EventId": f"E{number}", "EventType": kind, "EventStatus": status, "NotBefore": date}
        published = builders.published(told, vm=builders.vm_name(number))
        nodes.append(builders.on_vm(builders.node("ab"[number], annotations={IMDS: published}), number))
    return world_of([*nodes, builders.node("c")])


ONE_PLACE = builders.settings("budget: {maxUnavailable: 1, exempt: [], spacing: 1h}")


def test_a_node_that_the_platform_has_started_needs_no_place_and_no_spacing() -> None:
    world = struck_and("Freeze", 1)
    world.cluster.cordon("c")
    plan, _ = look(world, ONE_PLACE)

    assert [node.node for node in plan.nodes if node.starts] == ["a"]
    assert world.cluster.nodes["a"].unschedulable


@pytest.mark.parametrize("hours", [0.2, 0.25, 0.3])
def test_what_has_started_takes_no_place_from_a_drain_that_would_come_too_late(hours: float) -> None:
    world = struck_and("Reboot", hours)
    plan, _ = look(world, ONE_PLACE)

    # b is drained, and a is out of service anyway.
    assert [node.node for node in plan.nodes] == ["a", "b"]
    assert {node.node for node in plan.nodes if node.starts} == {"a", "b"}


def test_what_has_started_counts_for_a_drain_that_can_wait() -> None:
    world = struck_and("Reboot", 10)
    policy = builders.settings("budget: {maxUnavailable: 1}\nevents: {Reboot: {start: Early}}")
    plan, _ = look(world, policy)

    assert [node.node for node in plan.nodes if node.starts] == ["a"]
    later = builders.plan_of(plan, "b").schedule
    assert later is not None
    assert not later.missed
    assert later.planned_start is not None
    assert later.planned_start > NOW


def test_what_has_started_is_missed_where_the_calendar_allows_no_start() -> None:
    closed = 'events: {Reboot: {outsideWindow: Never}}\nwindows: [{start: "22:00", end: "23:00"}]'
    nights = builders.settings(f"{closed}\nnotAllowed: [{{start: 2026-11-01, end: 2028-11-01}}]")
    plan, _ = look(struck_and("Freeze", 1), nights)
    schedule = builders.plan_of(plan, "a").schedule

    assert schedule is not None
    assert (schedule.planned_start, schedule.missed) == (None, True)


def test_a_request_whose_date_has_passed_waits_for_a_place() -> None:
    asked = f'{{"kind":"Reboot","notBefore":"{(NOW - minutes(5)).isoformat()}"}}'
    world = world_of(
        [builders.node("a", annotations={REQUEST: asked}), builders.node("c", unschedulable=True)]
    )
    plan, _ = look(world, ONE_PLACE)

    assert not any(node.starts for node in plan.nodes)


def test_a_node_that_is_hidden_from_its_source_keeps_its_turn_and_one_that_is_not_loses_it() -> None:
    held = builders.record(
        State.REQUIRED, events=(builders.known(not_before=NOW + minutes(30), sources=("request",)),)
    )
    later = far("Reboot", 10)
    moved = builders.held_node(held, "a", annotations={REQUEST: later.replace("+00:00", "Z")})
    other = builders.node("b", annotations={REQUEST: far("Reboot", 5)})
    policy = builders.settings("budget: {maxUnavailable: 1}\nevents: {Reboot: {start: Early}}")
    plan, _ = look(world_of([moved, other]), policy)

    assert [one.node for one in plan.nodes if one.starts] == ["b"]


def test_the_deadline_does_not_beat_the_budget() -> None:
    late = f'{{"kind":"Reboot","notBefore":"{(NOW - minutes(5)).isoformat()}"}}'
    asking = builders.node("a", annotations={builders.REQUEST: late})
    world = world_of([asking, builders.node("b", ready=False, ready_since=NOW)])
    plan, _ = look(world, builders.settings("budget: {maxUnavailable: 1}"))

    (hold,) = builders.plan_of(plan).holds
    assert (hold.code, hold.until) == ("budgetLeft", NOW + minutes(30))
    assert "b (NotReady)" in hold.reason


def test_nodes_labelled_as_quarantined_start_one_after_another() -> None:
    nodes = [
        builders.node(
            f"n{number}",
            labels={UPGRADE_STATUS_LABEL: "Quarantined"},
            annotations={REQUEST: builders.DRAIN_NOW},
        )
        for number in range(5)
    ]
    world = world_of(nodes)
    policy = builders.settings("budget: {maxUnavailable: 1}")
    for _ in range(5):
        look(world, policy)
        carry_on(world)

    assert [name for name, one in world.cluster.nodes.items() if one.unschedulable] == ["n0"]


@pytest.mark.parametrize(("after", "holds"), [(119, True), (120, False)])
def test_our_node_that_reboots_holds_its_place_until_it_counts_as_gone(after: float, holds: bool) -> None:
    down = replace(
        builders.held_node(builders.record(), "a", unschedulable=True),
        conditions=(Condition("Ready", "False", transition=NOW - minutes(after)),),
    )
    asking = builders.node("b", annotations={REQUEST: builders.DRAIN_NOW})
    policy = builders.settings("budget: {maxUnavailable: 1, ignore: {notReadyFor: 2h}}")
    plan, _ = look(world_of([down, asking]), policy)

    assert builders.plan_of(plan, "b").starts is not holds
    held = [hold.reason for hold in builders.plan_of(plan, "b").holds if hold.code == "budgetLeft"]
    assert any("a (ours, drained)" in reason for reason in held) is holds


def test_an_exempt_kind_never_waits_and_is_counted() -> None:
    lost = builders.node("a", annotations={builders.REQUEST: '{"kind":"Preempt"}'})
    other = builders.node("b", annotations={builders.REQUEST: '{"kind":"Reboot"}'})
    world = world_of([lost, other])
    plan, _ = look(world, builders.settings("budget: {maxUnavailable: 1}"))

    assert [node.node for node in plan.nodes if node.starts] == ["a"]
    assert builders.codes(builders.plan_of(plan, "b")) == {"budgetLeft"}


def test_a_node_that_aks_upgrades_holds_a_place() -> None:
    upgraded = builders.node("a", pool="batch", annotations=builders.IN_UPGRADE)
    world = world_of([upgraded, builders.node("b", pool="web", annotations={REQUEST: builders.DRAIN_NOW})])
    plan, _ = look(world, builders.settings("budget: {maxUnavailable: 1}"))

    assert not any(node.starts for node in plan.nodes)
    assert builders.codes(builders.plan_of(plan, "b")) == {"budgetLeft"}


def test_a_node_already_out_of_service_needs_no_second_place() -> None:
    down = builders.node("a", unschedulable=True, annotations={builders.REQUEST: builders.DRAIN_NOW})
    world = world_of([down, builders.node("b")])
    plan, _ = look(world, builders.settings("budget: {maxUnavailable: 1}"))

    assert builders.plan_of(plan).starts
    assert plan.budget.holders == (("a", "cordoned by others"),)
    assert builders.case_of(world.cluster.nodes["a"]).cordon is Cordon.FOREIGN


SERVING = Hits()


@SERVING.at_least(8, QUARTER)
@settings(max_examples=examples(100, QUARTER))
@given(
    count=st.integers(2, 5),
    limit=st.integers(1, 3),
    surge=st.booleans(),
    of_aks=st.booleans(),
    steps=st.lists(
        st.tuples(
            st.sampled_from(
                ("ask", "ask", "withdraw", "machines", "machines", "unready", "get ready", "none")
            ),
            st.integers(0, 4),
            st.sampled_from((0, 1, 3, 10)),
        ),
        max_size=16,
    ),
)
# Few random histories delete a machine and ask for another node before the replacement is there.
@example(
    count=2, limit=1, surge=False, of_aks=False, steps=[("ask", 0, 1), ("ask", 1, 1), ("machines", 0, 1)]
)
def test_a_node_that_was_replaced_holds_its_place_until_its_replacement_is_in_service(
    count: int, limit: int, surge: bool, of_aks: bool, steps: list[tuple[str, int, int]]
) -> None:
    world = world_of()
    provider = AKS if of_aks else OPENSHIFT
    machines, _ = in_pool(world, *(f"n{number}" for number in range(count)), provider=provider)
    machines.slow = True
    policy = builders.settings(
        f"budget: {{maxUnavailable: {limit}, ignore: {{notReadyFor: 4h}}}}\n"
        f"events: {{Reboot: {{replace: true}}}}\nreplace: {{surge: {str(surge).lower()}}}"
    )
    for what, which, wait in steps:
        name = next(iter(sorted(world.cluster.nodes)[which:]), "")
        if name and what in ("ask", "withdraw"):
            world.cluster.annotate(name, REQUEST, builders.DRAIN_NOW if what == "ask" else None)
        elif what in ("machines", "unready"):
            machines.step(ready=what == "machines")
        elif name and what == "get ready":
            world.cluster.set_condition(name, Condition("Ready", "True"))
        world.advance(minutes(wait))
        for _ in range(4):
            before = dict(world.cluster.nodes)
            plan, _ = look(world, policy)
            carry_on(world)
            serving = {name for name, one in before.items() if one.ready and not one.unschedulable}
            fresh = serving & {node.node for node in plan.nodes if node.starts}

            SERVING.count(bool(fresh) and bool(machines.asked))
            assert not fresh or count - len(serving - fresh) <= limit
