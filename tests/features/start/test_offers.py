"""A start is offered for a node that will be missed exactly if its drain then begins, and can end."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given, settings

from reconciler.features.start.instruction import Start, key_of, may_begin, text_of
from reconciler.model.event import Kind, PlatformPlan
from reconciler.model.instructions import ForEvents, PersonHold, Word, hold_text
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.pod import Owner
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.record import CaseRecord, State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.passes.decide.one_node import START_CHECKS
from reconciler.profiles import case as cases
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.instructed import case_of
from reconciler.run import as_if, examine
from reconciler.settings.schema import Settings
from reconciler.simulation.workloads import BudgetSpec
from reconciler.simulation.world import World
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import NOW, PREFIX, REQUEST, minutes, plan_of
from tests.support.searching import QUARTER, examples
from tests.support.worlds import world_of

ASKED = Hits()
CLOSED = 'windows: [{schedule: "0 3 29 2 *", duration: 1h}]\nevents: {Redeploy: {outsideWindow: Never}}'


def started(node: Node, plan: NodePlan) -> Node:
    """The node with a start of its drain for all of its events."""
    said = ForEvents(
        Word("alice@laptop", NOW),
        case_of(plan.record or CaseRecord()),
        tuple(cases.known(one.event) for one in plan.events if may_begin(one)),
    )
    text = text_of(Start(said, now=True), node)
    return replace(node, annotations={**node.annotations, key_of(PREFIX): text})


def begins(plan: NodePlan) -> bool:
    """Whether the maintenance for an event begins with this pass, also on a node without pods to evict."""
    return any(step.after is State.IN_MAINTENANCE for step in plan.transitions)


@ASKED.at_least(400, QUARTER)
@settings(max_examples=examples(1200, QUARTER))
@given(strategies.worlds(more=strategies.late_nodes), strategies.policies())
def test_it_is_offered_exactly_if_the_drain_then_begins(world: World, policy: Settings) -> None:
    found = examine(world.outside, policy, NOW)
    missed = {
        plan.node: plan for plan in found.plan.nodes if plan.schedule is not None and plan.schedule.missed
    }
    for node in found.snapshot.nodes:
        before = missed.get(node.name)
        if before is None or before.schedule is None or before.schedule.started or begins(before):
            continue
        if (before.before, before.after) == (State.IN_MAINTENANCE, State.OPERATIONAL):
            # Somebody uncordoned the node, so what is new begins with the pass after this one.
            continue
        after = plan_of(as_if(found, started(node, before), policy), node.name)
        if all(event.waiver is not None for event in filter(may_begin, after.events)):
            ASKED.count()
            assert bool(before.schedule.remedies) is begins(after)


def scheduled(
    text: str = CLOSED,
    *,
    word: str = "",
    budget: BudgetSpec | None = None,
    mode: str = "Enforce",
    reconciler: Reconciler | None = None,
) -> CaseSchedule:
    """The schedule of a node with a Redeploy in five hours that will be missed. `word` is a hold's text."""
    asked = {REQUEST: f'{{"kind":"Redeploy","notBefore":"{NOW + minutes(300):%Y-%m-%dT%H:%M:%SZ}"}}'}
    asked |= {f"{PREFIX}/hold": word} if word else {}
    pod = replace(builders.pod("web-1", "a"), owner=Owner("ReplicaSet", "web-abc", "apps/v1"))
    world = world_of([builders.node(annotations=asked), builders.node("b")], [pod])
    if budget is not None:
        world.cluster.add_budget(budget)
    outside = world.outside if reconciler is None else replace(world.outside, reconciler=reconciler)
    found = plan_of(examine(outside, builders.settings(text, mode=mode), NOW).plan).schedule
    assert found is not None
    assert found.missed
    return found


@pytest.mark.parametrize(
    "text",
    [
        CLOSED,
        "notAllowed: [{start: 2026-11-20, end: 2026-11-24, absolute: true}]",
        "budget: {maxUnavailable: 0}",
        f"{CLOSED}\nbudget: {{maxUnavailable: 0}}",
        CLOSED.replace("Never}", "Never, approval: true}"),
    ],
    ids=["a window", "an absolute freeze", "the budget", "both", "an approval besides"],
)
def test_it_is_offered_where_the_settings_make_the_miss(text: str) -> None:
    found = scheduled(text)

    assert found.remedies == ("reconciler start a --now",)


@pytest.mark.parametrize(
    "makes",
    [
        {"text": "", "budget": BudgetSpec("shop", "web", EVERYTHING, min_available=1)},
        {"budget": BudgetSpec("shop", "web", EVERYTHING, min_available=1)},
        {"word": hold_text(PersonHold(Word("bob@laptop", NOW)))},
        {"mode": "Observe"},
        {"mode": "Finish"},
        {"reconciler": Reconciler(Running.OVERDUE, last_pass=NOW - minutes(60))},
    ],
    ids=["pods stay", "pods stay besides", "held", "Observe", "Finish", "no reconciler"],
)
def test_it_is_not_offered_where_it_would_not_help(makes: dict[str, object]) -> None:
    assert scheduled(**makes).remedies == ()  # type: ignore[arg-type]


HOLDS_ALL_THE_SAME = {
    *("drainDue", "startsAllowed", "leftToUs", "conditionOnFewNodes", "onlyReconciler", "notHeld"),
    *("othersFirst", "offerAnswered"),
}


def test_each_check_of_a_start_is_decided_about() -> None:
    # Either a start now passes it (`waived` of the check, or a wait of a feature), or it is in this list.
    passes = {name for name in START_CHECKS if CHECKS[name].type.waived or CHECKS[name].type.wait is not None}

    assert {name for name, check in CHECKS.items() if check.type.waived} <= START_CHECKS
    assert START_CHECKS - passes == HOLDS_ALL_THE_SAME


@pytest.mark.parametrize(
    ("mode", "remedies"), [("Enforce", ("reconciler start a --now",)), ("Observe", ()), ("Finish", ())]
)
def test_for_a_plan_that_requires_no_drain_yet_it_is_offered_where_the_mode_begins_one(
    mode: str, remedies: tuple[str, ...]
) -> None:
    weeks = NOW + timedelta(days=9)
    announced = dataclasses.replace(
        builders.signal(Kind.REDEPLOY, not_before=weeks), plan=PlatformPlan(weeks)
    )
    seen = builders.snapshot(builders.node(), readings={"a": builders.reported(announced)})
    found = plan_of(builders.planned(seen, builders.settings(CLOSED, mode=mode)))

    assert [event.asks for event in found.events] == [False]
    assert found.schedule is not None
    assert (found.schedule.missed, found.schedule.remedies) == (True, remedies)
