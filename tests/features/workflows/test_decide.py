"""Workflows in whole passes over a simulated cluster: what a node shows, and what its profiles do to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from reconciler.features.workflows.holds import (
    WORKFLOW,
    WORKFLOW_DATA_READABLE,
    WORKFLOW_GONE,
    WORKFLOW_UNCORDONED,
)
from reconciler.features.workflows.reports import reports_of
from reconciler.model.errors import Conflict, Forbidden
from reconciler.model.holds import ONE_PROFILE
from reconciler.model.instructions import PersonHold, Word
from reconciler.model.messages import ProfileMessage
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.values import replace
from reconciler.passes.decide.draining import KEEP_COMING
from reconciler.report.columns import log_fields
from reconciler.report.document import to_report
from reconciler.report.text import as_text
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Mode, Settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.worlds import carry_on, look, world_of

PROFILE, STATE, DATA = (f"cloud.sap/maintenance-{word}" for word in ("profile", "state", "data"))

FILE = """\
intervals: {requeue: 1s}
instances:
  check:
  - {type: hasLabel, name: go, config: {key: go, value: "true"}}
  - {type: hasLabel, name: done, config: {key: done}}
  trigger:
  - {type: alterLabel, name: seen, config: {key: seen, value: "yes"}}
  - {type: alterAnnotation, name: remove-approval, config: {key: example.com/approved, remove: true}}
  - {type: alterFinalizer, name: keep, config: {key: example.com/keep}}
  - {type: alterFinalizer, name: let-go, config: {key: example.com/keep, remove: true}}
  - {type: taint, name: taint, config: {key: example.com/out, value: "1"}}
  - {type: taint, name: untaint, config: {key: example.com/out, remove: true}}
  - {type: eviction, name: cordon, config: {action: cordon}}
  - {type: eviction, name: drain, config: {action: drain}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
profiles:
- name: plain
  operational:
    transitions: [{check: go, trigger: seen, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: go, trigger: keep && taint, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: done, trigger: let-go && untaint, next: operational}]
- name: draining
  operational:
    transitions: [{check: go, next: in-maintenance}]
  in-maintenance:
    enter: drain && seen
    transitions: [{check: done, trigger: uncordon, next: operational}]
- name: chained
  operational:
    transitions: [{check: go, trigger: remove-approval && drain && seen, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: done, trigger: uncordon, next: operational}]
- name: broken
  operational:
    transitions: [{check: go, trigger: hypervisor, next: maintenance-required}]
"""
FILE = FILE.replace(
    "  - {type: eviction, name: cordon",
    "  - {type: alterHypervisor, name: hypervisor, config: {version: x}}\n  - {type: eviction, name: cordon",
    1,
)


def theirs(text: str = FILE) -> Settings:
    return parse_settings(text, "their.yaml")


def with_check(instance: str) -> str:
    """The file with one more check."""
    return FILE.replace("  trigger:\n", f"  - {instance}\n  trigger:\n", 1)


def labelled(name: str = "a", profile: str = "", **labels: str) -> Node:
    return builders.node(name, labels={**labels, **({PROFILE: profile} if profile else {})})


def data(world: World, name: str = "a") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.cluster.nodes[name].annotations[DATA])
    return found


def states(world: World, name: str = "a") -> dict[str, str]:
    return {profile: kept["Current"] for profile, kept in data(world, name)["Profiles"].items()}


def passes(world: World, settings: Settings, count: int = 1) -> Plan:
    for _ in range(count):
        plan, outcomes = look(world, settings)
        assert [one for one in outcomes if one.result.value == "failed"] == []
        carry_on(world)
        world.advance(timedelta(seconds=1))
    return plan


def plan_of(plan: Plan, name: str = "a") -> NodePlan:
    return next(one for one in plan.nodes if one.node == name)


def label(world: World, key: str, value: str = "true", name: str = "a") -> None:
    node = world.cluster.nodes[name]
    world.cluster.put_node(replace(node, labels={**node.labels, key: value}))


def test_each_managed_node_shows_its_state_and_its_data() -> None:
    world = world_of([labelled("a"), labelled("b", "plain"), labelled("c", **{"cloud.sap/ignore": "true"})])

    passes(world, theirs())

    assert [node.labels.get(STATE) for node in world.cluster.nodes.values()] == [
        "operational",
        "operational",
        None,
    ]
    assert states(world) == {"default": "operational"}
    assert data(world, "b") == {
        "Profiles": {
            "plain": {
                "Transition": "2026-11-21T12:00:00Z",
                "Current": "operational",
                "Previous": "operational",
            }
        },
        "Notifications": {},
    }
    assert DATA not in world.cluster.nodes["c"].annotations


def test_a_label_that_a_check_read_and_that_is_gone_at_the_write_takes_the_step_back() -> None:
    world = world_of([labelled("a", "draining")])
    passes(world, theirs())
    label(world, "go")

    def withdraw(call: Call) -> None:
        node = world.cluster.nodes["a"]
        if call.what == "patch_node" and "go" in node.labels:
            labels = {key: text for key, text in node.labels.items() if key != "go"}
            world.cluster.put_node(replace(node, labels=labels))

    world.api.before_write = withdraw
    _, outcomes = look(world, theirs())

    # The same pass has read the node again, and takes no step.
    assert outcomes == ()
    assert states(world)["draining"] == "operational"
    assert not world.cluster.nodes["a"].unschedulable


def test_a_workflow_takes_one_step_in_a_pass_and_its_triggers_are_in_the_same_patch() -> None:
    world = world_of([labelled("a", "plain", go="true")])

    passes(world, theirs())
    node = world.cluster.nodes["a"]
    assert (node.labels[STATE], node.labels["seen"]) == ("maintenance-required", "yes")
    assert data(world)["Profiles"]["plain"]["Previous"] == "operational"

    passes(world, theirs())
    node = world.cluster.nodes["a"]
    assert states(world) == {"plain": "in-maintenance"}
    assert node.finalizers == ("example.com/keep",)
    assert [(one.key, one.value, one.effect) for one in node.taints] == [
        ("example.com/out", "1", "NoSchedule")
    ]

    label(world, "done")
    passes(world, theirs())
    node = world.cluster.nodes["a"]
    assert (states(world), node.finalizers, node.taints) == ({"plain": "operational"}, (), ())


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("unread", "go", "operational", id="unknown before"),
        pytest.param("go", "unread", "in-maintenance", id="unknown behind"),
        pytest.param("unread && done", "go", "maintenance-required", id="failed whatever the answer is"),
    ],
)
def test_a_transition_that_is_unknown_stops_those_behind_it(first: str, second: str, expected: str) -> None:
    steps = f"[{{check: {first}, next: in-maintenance}}, {{check: {second}, next: maintenance-required}}]"
    text = with_check("{type: prometheusInstant, name: unread, config: {url: nowhere}}")
    settings = theirs(f"{text}- name: forked\n  operational: {{transitions: {steps}}}\n")
    world = world_of([labelled("a", "forked", go="true")])

    passes(world, settings)

    assert states(world) == {"forked": expected}


@pytest.mark.parametrize(
    ("state", "expected"),
    [("maintenance-required", "maintenance-required"), ("in-maintenance", "operational")],
)
def test_a_step_to_the_same_state_ends_the_choice_except_in_maintenance(state: str, expected: str) -> None:
    """As in maintenance-controller: in maintenance, no step into maintenance passes."""
    steps = f"[{{check: go, next: {state}}}, {{check: go, next: operational}}]"
    settings = theirs(f"{FILE}- name: same\n  {state}: {{transitions: {steps}}}\n")
    world = world_of([labelled("a", "same", go="true")])
    kept = {"Transition": "2026-11-21T11:00:00Z", "Current": state, "Previous": state}
    world.cluster.annotate("a", DATA, json.dumps({"Profiles": {"same": kept}, "Notifications": {}}))

    passes(world, settings)

    assert states(world) == {"same": expected}


def test_the_event_about_a_step_is_that_of_maintenance_controller() -> None:
    world = world_of([labelled("a", "plain", go="true")])

    passes(world, theirs())

    (event,) = world.cluster.events
    assert (event.notice.reason, event.notice.named_as_node) == ("ChangedMaintenanceState", True)
    assert event.notice.message == "The node is now in the maintenance-required state caused by profile plain"


def with_pod(profile: str, **labels: str) -> World:
    pod = builders.pod("web")
    return world_of([labelled("a", profile, go="true", **labels)], [pod])


@pytest.mark.parametrize("profile", ["draining", "chained"])
def test_a_chain_waits_for_the_drain_and_then_goes_on(profile: str) -> None:
    world = with_pod(profile)
    seen: list[tuple[bool, int, str | None]] = []

    for _ in range(6):
        passes(world, theirs())
        node = world.cluster.nodes["a"]
        seen.append((node.unschedulable, len(world.cluster.pods), node.labels.get("seen")))

    assert seen[-1] == (True, 0, "yes")
    assert states(world) == {profile: "in-maintenance"}
    assert all(cordoned or pods == 1 for cordoned, pods, _ in seen)
    assert all(mark is None or pods == 0 for _, pods, mark in seen)

    label(world, "done")
    label(world, "go", "false")
    passes(world, theirs(), 2)
    node = world.cluster.nodes["a"]
    assert (node.unschedulable, states(world)) == (False, {profile: "operational"})
    assert "cloud.sap/record" not in node.annotations


def test_a_chain_that_waits_goes_on_although_its_check_no_longer_passes() -> None:
    world = with_pod("chained")
    passes(world, theirs())
    assert world.cluster.nodes["a"].unschedulable
    label(world, "go", "false")

    passes(world, theirs(), 3)

    assert states(world) == {"chained": "in-maintenance"}


def test_a_drain_of_the_next_run_is_another_drain() -> None:
    world = with_pod("draining")
    passes(world, theirs(), 4)
    label(world, "done")
    settings = theirs(FILE.replace("trigger: uncordon, next: operational", "next: operational"))
    passes(world, settings)
    world.cluster.add_pod(builders.pod("next"))

    passes(world, settings, 4)

    assert not world.cluster.pods


def test_a_cordon_of_somebody_else_stays_after_the_workflow() -> None:
    world = world_of([replace(labelled("a", "draining", go="true"), unschedulable=True)])
    passes(world, theirs(), 4)
    assert states(world) == {"draining": "in-maintenance"}
    label(world, "done")

    passes(world, theirs(), 2)

    assert world.cluster.nodes["a"].unschedulable


def test_a_cordon_that_maintenance_controller_made_is_undone() -> None:
    text = json.dumps(
        {
            "Profiles": {
                "draining": {
                    "Transition": "2026-11-20T12:00:00.123456789+01:00",
                    "Current": "in-maintenance",
                    "Previous": "in-maintenance",
                }
            },
            "Notifications": {"slack": "0001-01-01T00:00:00Z"},
        }
    )
    node = builders.node(
        "a", labels={PROFILE: "draining", "done": "true"}, annotations={DATA: text}, unschedulable=True
    )
    world = world_of([node])

    passes(world, theirs(), 2)

    assert not world.cluster.nodes["a"].unschedulable
    assert data(world)["Notifications"] == {"slack": "0001-01-01T00:00:00Z"}


THEIRS = "2026-11-21T12:00:05.5Z"
"""A moment as maintenance-controller writes it: with a fraction of a second."""


def taken_over(profile: str, state: str, previous: str, transition: str = THEIRS) -> str:
    kept = {"Transition": transition, "Current": state, "Previous": previous}
    return json.dumps({"Profiles": {profile: kept}, "Notifications": {}})


@pytest.mark.parametrize(
    ("transition", "stays"),
    [
        pytest.param("2026-11-21T11:59:00.5Z", False, id="maintenance-controller entered the state"),
        pytest.param("2026-11-21T11:59:00Z", True, id="the state is ours, the cordon is not"),
    ],
)
def test_a_chain_that_maintenance_controller_began_ends_with_its_cordon(transition: str, stays: bool) -> None:
    world = with_pod("draining")
    text = taken_over("draining", "in-maintenance", "operational", transition)
    world.cluster.annotate("a", DATA, text)
    world.cluster.cordon("a")
    passes(world, theirs(), 4)
    assert not world.cluster.pods
    label(world, "done")
    label(world, "go", "false")

    passes(world, theirs(), 2)

    assert states(world) == {"draining": "operational"}
    assert world.cluster.nodes["a"].unschedulable is stays


@pytest.mark.parametrize("uncordoned", [True, False])
def test_what_maintenance_controller_has_ended_is_not_waited_for(uncordoned: bool) -> None:
    world = with_pod("draining")
    world.cluster.bare_pods_stop_after = timedelta(hours=1)
    passes(world, theirs(), 3)
    assert json.loads(world.cluster.nodes["a"].annotations["cloud.sap/record"])["drain"]["claims"]

    label(world, "go", "false")
    world.cluster.annotate("a", DATA, taken_over("draining", "operational", "operational"))
    if uncordoned:
        world.cluster.cordon("a", on=False)
    world.advance(timedelta(seconds=10))
    plan = passes(world, theirs(), 2)

    assert plan_of(plan).todo.drain is None
    # A cordon that is left says how it ends.
    left = [] if uncordoned else [WORKFLOW_GONE.code]
    assert [hold.code for hold in plan_of(plan).holds] == left
    record = json.loads(world.cluster.nodes["a"].annotations.get("cloud.sap/record", "{}"))
    assert ("cordon" in record, "drain" in record) == (not uncordoned, False)

    label(world, "go")
    assert plan_of(passes(world, theirs(), 2)).todo.drain is not None


def test_only_one_profile_is_in_maintenance_also_within_one_pass() -> None:
    text = FILE + (
        "- name: first\n"
        "  operational: {transitions: [{check: go, next: in-maintenance}]}\n"
        "  in-maintenance: {transitions: [{check: done, next: maintenance-required}]}\n"
        "- name: second\n"
        "  operational: {transitions: [{check: go, next: in-maintenance}]}\n"
    )
    world = world_of([labelled("a", "first--second", go="true")])

    plan = passes(world, theirs(text))
    assert states(world) == {"first": "in-maintenance", "second": "operational"}
    assert ONE_PROFILE.code in {hold.code for hold in plan_of(plan).holds}

    label(world, "done")
    passes(world, theirs(text))
    assert states(world) == {"first": "maintenance-required", "second": "operational"}
    passes(world, theirs(text))
    assert states(world)["second"] == "in-maintenance"


@pytest.mark.parametrize(
    ("names", "before"),
    [
        pytest.param("first--second", 1, id="the pass in which the chain goes on asks the other one first"),
        pytest.param("second--first", 1, id="the other one begins later"),
        pytest.param("second--first", 0, id="both begin in one pass"),
    ],
)
def test_a_node_that_is_drained_for_one_profile_is_in_maintenance_for_no_other(
    names: str, before: int
) -> None:
    text = with_check("{type: hasLabel, name: early, config: {key: early}}") + (
        "- name: first\n"
        "  operational: {transitions: [{check: go, next: in-maintenance}]}\n"
        "- name: second\n"
        "  operational: {transitions: [{check: early, trigger: drain, next: in-maintenance}]}\n"
    )
    world = world_of([labelled("a", names, early="true")], [builders.pod("web", "a")])
    world.cluster.bare_pods_stop_after = timedelta(seconds=5)
    for _ in range(before):
        passes(world, theirs(text))
    label(world, "go")
    plan = passes(world, theirs(text), 2)
    assert states(world) == {"first": "operational", "second": "operational"}
    assert ONE_PROFILE.code in {hold.code for hold in plan_of(plan).holds}
    passes(world, theirs(text), 6)

    assert states(world) == {"first": "operational", "second": "in-maintenance"}


def test_data_that_cannot_be_read_hold_the_node_and_are_not_overwritten() -> None:
    text = '{"Profiles":{"plain":{"Current":"operational","Extra":1}}}'
    node = builders.node("a", labels={PROFILE: "plain", "go": "true"}, annotations={DATA: text})
    world = world_of([node, labelled("b", "plain", go="true")])

    plan = passes(world, theirs(), 2)

    assert world.cluster.nodes["a"].annotations[DATA] == text
    assert STATE not in world.cluster.nodes["a"].labels
    (hold,) = plan_of(plan).holds
    assert hold.code == WORKFLOW_DATA_READABLE.code
    assert "it has the unknown field 'Extra'" in hold.reason
    assert "kubectl annotate node a cloud.sap/maintenance-data- removes the states" in hold.reason
    assert states(world, "b") == {"plain": "in-maintenance"}


def test_a_chain_that_fails_drops_no_progress_of_another_profile() -> None:
    world = world_of([labelled("a", "broken--plain", go="true")])

    plan = passes(world, theirs(), 2)

    assert states(world) == {"broken": "operational", "plain": "in-maintenance"}
    reason = plan_of(plan).holds[0].reason
    assert reason.startswith("profile broken: the Hypervisors can't be read: the cluster has no kind")


def test_profiles_that_leave_the_label_leave_the_data_and_unknown_ones_are_skipped() -> None:
    world = world_of([labelled("a", "gone--plain", go="true")])
    passes(world, theirs())
    assert states(world) == {"plain": "maintenance-required"}

    label(world, PROFILE, "draining")
    label(world, "go", "false")
    passes(world, theirs())

    assert states(world) == {"draining": "operational"}
    assert world.cluster.nodes["a"].labels[STATE] == "operational"


def test_a_node_that_loses_its_profile_while_it_is_cordoned_says_how_it_comes_back() -> None:
    world = with_pod("draining")
    passes(world, theirs(), 4)
    label(world, PROFILE, "plain")
    label(world, "go", "false")

    plan = passes(world, theirs(), 2)

    assert world.cluster.nodes["a"].unschedulable
    (hold,) = plan_of(plan).holds
    assert hold.code == WORKFLOW_GONE.code
    assert "profile draining, which it does not have any more" in hold.reason


@pytest.mark.parametrize("lost", ["the label for some time", "the data"])
def test_a_node_that_is_cordoned_for_an_operational_profile_says_how_it_comes_back(lost: str) -> None:
    world = with_pod("draining")
    passes(world, theirs(), 4)
    label(world, "go", "false")
    if lost == "the data":
        world.cluster.annotate("a", DATA, None)
    else:
        label(world, PROFILE, "plain")
        passes(world, theirs())
        label(world, PROFILE, "draining")

    plan = passes(world, theirs(), 2)

    assert world.cluster.nodes["a"].unschedulable
    (hold,) = plan_of(plan).holds
    assert hold.code == WORKFLOW_GONE.code
    assert hold.reason == (
        "the node is cordoned for profile draining, which is operational: "
        "reconciler release a --prefix cloud.sap removes our cordon, label and record"
    )


def test_a_node_whose_chain_is_gone_from_the_settings_during_its_drain_says_how_it_comes_back() -> None:
    world = with_pod("chained")
    world.cluster.bare_pods_stop_after = timedelta(hours=1)
    passes(world, theirs(), 2)
    without = theirs(FILE.replace("remove-approval && drain && seen", "seen", 1))

    plan = passes(world, without)

    assert world.cluster.nodes["a"].unschedulable
    assert WORKFLOW_GONE.code in [hold.code for hold in plan_of(plan).holds]


def test_a_node_whose_state_is_gone_from_the_settings_says_how_it_comes_back() -> None:
    world = world_of([labelled("a", "plain", go="true")])
    passes(world, theirs())
    start, end = FILE.index("- name: plain"), FILE.index("- name: draining")
    short = "- name: plain\n  operational: {transitions: [{check: go, next: in-maintenance}]}\n"
    without = theirs(FILE[:start] + short + FILE[end:])

    plan = passes(world, without)

    (hold,) = plan_of(plan).holds
    assert hold.code == WORKFLOW_GONE.code
    assert hold.reason == (
        "the settings of profile plain have no maintenance-required any more: add transitions from it; or "
        "kubectl annotate node a cloud.sap/maintenance-data- removes the states of its profiles, which begin "
        "as operational"
    )
    world.cluster.annotate("a", DATA, None)
    plan = passes(world, without, 3)
    # A step leads to in-maintenance, though none leads out.
    assert (states(world), plan_of(plan).holds) == ({"plain": "in-maintenance"}, ())


def test_settings_without_workflows_name_the_nodes_that_one_has_cordoned() -> None:
    world = with_pod("draining")
    passes(world, theirs(), 4)

    plan = passes(world, parse_settings("mode: Enforce\nkeys: {prefix: cloud.sap}", "ours.yaml"), 2)

    assert [hold.code for hold in plan_of(plan).holds] == [WORKFLOW_GONE.code]
    assert world.cluster.nodes["a"].unschedulable


def test_nothing_is_evicted_after_somebody_has_uncordoned_the_node() -> None:
    world = with_pod("draining")
    world.cluster.bare_pods_stop_after = timedelta(hours=1)
    passes(world, theirs(), 3)
    assert world.cluster.nodes["a"].unschedulable
    world.cluster.cordon("a", on=False)

    plan = passes(world, theirs(), 2)

    assert {hold.code for hold in plan_of(plan).holds} == {WORKFLOW_UNCORDONED.code, WORKFLOW.code}
    assert plan_of(plan).todo.drain is None
    assert not world.cluster.nodes["a"].unschedulable

    world.cluster.cordon("a")
    assert plan_of(passes(world, theirs())).todo.drain is not None


@pytest.mark.parametrize("profile", ["draining", "chained"])
def test_a_node_that_was_uncordoned_during_its_drain_leaves_the_profile_when_its_checks_say_so(
    profile: str,
) -> None:
    world = with_pod(profile)
    world.cluster.bare_pods_stop_after = timedelta(hours=1)
    passes(world, theirs(), 3)
    world.cluster.cordon("a", on=False)
    passes(world, theirs(), 2)

    label(world, "go", "false")
    label(world, "done")
    plan = passes(world, theirs(), 2)

    assert states(world) == {profile: "operational"}
    assert world.cluster.nodes["a"].labels[STATE] == "operational"
    assert plan_of(plan).holds == ()
    assert "cloud.sap/record" not in world.cluster.nodes["a"].annotations


def test_a_step_that_leads_back_to_the_drain_is_not_taken_on_a_node_that_was_uncordoned() -> None:
    world = with_pod("chained")
    world.cluster.bare_pods_stop_after = timedelta(hours=1)
    passes(world, theirs(), 3)
    world.cluster.cordon("a", on=False)

    plan = passes(world, theirs(), 2)

    (hold,) = plan_of(plan).holds
    assert hold.code == WORKFLOW_UNCORDONED.code
    assert "kubectl cordon a goes on with the drain" in hold.reason
    assert not world.cluster.nodes["a"].unschedulable


def ours() -> Settings:
    """The same workflows in settings of our own."""
    below = "".join(f"  {line}\n" for line in FILE.splitlines())
    return parse_settings(f"mode: Enforce\nkeys: {{prefix: cloud.sap}}\nprofiles:\n{below}", "ours.yaml")


@pytest.mark.heavy
@pytest.mark.parametrize("profile", ["draining", "chained"])
def test_a_file_of_maintenance_controller_cordons_such_a_node_again_less_and_less_often(profile: str) -> None:
    world = with_pod(profile)
    world.cluster.bare_pods_stop_after = timedelta(days=9)
    passes(world, theirs(), 3)
    cordons = []

    settings = theirs()
    for minute in range(0, 12 * 60, 5):
        world.cluster.cordon("a", on=False)
        plan = passes(world, settings)
        if world.cluster.nodes["a"].unschedulable:
            cordons.append(minute)
            assert plan_of(plan).todo.drain is not None
        world.advance(timedelta(minutes=5))

    assert cordons[0] == 5
    assert 4 <= len(cordons) <= 9


@pytest.mark.parametrize("by", ["our own settings", "a hold"])
def test_a_node_that_somebody_wants_in_service_is_not_cordoned_again(by: str) -> None:
    world, settings = with_pod("draining"), ours() if by == "our own settings" else theirs()
    world.cluster.bare_pods_stop_after = timedelta(days=9)
    passes(world, settings, 3)
    world.cluster.cordon("a", on=False)
    settings = held_by_name(world, settings) if by == "a hold" else settings
    world.advance(timedelta(hours=1))

    plan = passes(world, settings, 3)

    assert not world.cluster.nodes["a"].unschedulable
    assert WORKFLOW_UNCORDONED.code in {hold.code for hold in plan_of(plan).holds}
    assert plan_of(plan).todo.drain is None


@pytest.mark.parametrize("forced", [False, True])
def test_an_attempt_that_takes_too_long_is_reported_and_the_next_one_evicts_too(forced: bool) -> None:
    config = f"action: drain, evictionTimeout: 5s, deletionTimeout: 20s, forceEviction: {str(forced).lower()}"
    settings = theirs(FILE.replace("action: drain", config))
    world = with_pod("draining")
    world.cluster.bare_pods_stop_after = timedelta(hours=1)
    passes(world, settings, 3)
    world.advance(timedelta(seconds=5))

    plan = passes(world, settings)

    order = plan_of(plan).todo.drain
    assert order is not None
    assert (order.options.use_delete, order.timeout) == (False, timedelta(seconds=5))
    assert order.escalation.force_late == forced
    assert order.why == "workflow draining"
    notice = world.cluster.events[-1].notice
    assert (notice.reason, notice.message) == (
        "ChangeMaintenanceStateFailed",
        "Failed to drain the node within 5s for profile draining: Will stay in in-maintenance state",
    )


def test_new_pods_that_keep_coming_are_an_event_as_in_every_drain() -> None:
    world, settings = with_pod("draining"), theirs()
    world.cluster.bare_pods_stop_after = timedelta(minutes=9)
    passes(world, settings, 3)
    for number in range(40):
        world.cluster.add_pod(replace(builders.pod(f"new-{number}", owner=""), created=world.now))
        passes(world, settings, 2)

    said = [event.notice for event in world.cluster.events if event.notice.reason == KEEP_COMING]
    assert len(said) == 1
    assert "new pods keep coming from namespace shop" in said[0].message


def test_a_hook_of_a_pod_holds_only_that_pod_and_has_one_limit_for_all_attempts() -> None:
    settings = theirs(FILE.replace("action: drain", "action: drain, evictionTimeout: 4m"))
    hooked = {"cloud.sap/pre-drain.copy": "team-a"}
    pods = [builders.pod("web"), replace(builders.pod("db"), annotations=hooked)]
    world = world_of([labelled("a", "draining", go="true")], pods)
    passes(world, settings, 3)

    def there() -> list[str]:
        return sorted(pod.name for pod in world.cluster.pods.values())

    assert there() == ["db"]
    for _ in range(9):
        world.advance(timedelta(minutes=1))
        passes(world, settings)
    assert there() == ["db"]
    world.advance(timedelta(minutes=1))
    passes(world, settings, 2)
    assert there() == []


def test_the_drain_of_a_workflow_takes_all_pods_that_maintenance_controller_takes() -> None:
    plan = passes(with_pod("draining"), theirs(), 2)

    order = plan_of(plan).todo.drain
    assert order is not None
    options = order.options
    assert (options.ignore_daemonsets, options.evict_empty_dir, options.evict_unmanaged) == (True, True, True)
    assert (options.use_delete, order.timeout) == (False, timedelta(minutes=10))


def test_a_file_of_maintenance_controller_drains_as_many_nodes_at_once_as_its_checks_allow() -> None:
    names = [f"n{number}" for number in range(12)]
    pods = [builders.pod(name, name) for name in names]

    def drained(settings: Settings) -> int:
        world = world_of([labelled(name, "draining", go="true") for name in names], pods)
        world.cluster.bare_pods_stop_after = timedelta(hours=1)
        return sum(one.todo.drain is not None for one in passes(world, settings, 2).nodes)

    assert (drained(theirs()), drained(ours())) == (12, 10)


def test_in_mode_finish_no_workflow_begins_and_maintenance_ends() -> None:
    below = "".join(f"  {line}\n" for line in FILE.splitlines())
    settings = parse_settings(f"mode: Finish\nkeys: {{prefix: cloud.sap}}\nprofiles:\n{below}", "ours.yaml")
    world = world_of([labelled("a", "plain", go="true"), labelled("b", "draining", go="true")])
    world.cluster.annotate(
        "b",
        DATA,
        json.dumps(
            {
                "Profiles": {
                    "draining": {
                        "Transition": "2026-11-20T12:00:00Z",
                        "Current": "in-maintenance",
                        "Previous": "in-maintenance",
                    }
                }
            }
        ),
    )
    label(world, "done", name="b")

    passes(world, settings, 2)

    assert states(world) == {"plain": "operational"}
    assert states(world, "b") == {"draining": "operational"}


def test_the_platforms_maintenance_waits_for_a_workflow_and_the_other_way_round() -> None:
    below = "".join(f"  {line}\n" for line in FILE.splitlines())
    settings = parse_settings(
        f"mode: Enforce\nkeys: {{prefix: cloud.sap}}\nbudget: {{maxUnavailable: 100%}}\nprofiles:\n{below}",
        "ours.yaml",
    )
    world = world_of([labelled("a", "draining", go="true"), labelled("b", "draining")])
    passes(world, settings, 4)
    assert states(world) == {"draining": "in-maintenance"}
    for name in ("a", "b"):
        world.cluster.annotate(name, "cloud.sap/request", builders.DRAIN_NOW)

    passes(world, settings, 2)
    label(world, "go", name="b")
    plan = passes(world, settings, 2)

    held = {(one.node, hold.code): hold.reason for one in plan.nodes for hold in one.holds}
    assert held["a", ONE_PROFILE.code] == (
        "it is in maintenance for profile draining; only one profile at a time"
    )
    assert "the maintenance of the platform" in held["b", ONE_PROFILE.code]
    assert states(world, "b") == {"draining": "operational"}
    assert world.cluster.nodes["b"].labels[STATE] == "in-maintenance"

    label(world, "done")
    passes(world, settings, 3)
    assert states(world) == {"draining": "operational"}
    assert world.cluster.nodes["a"].unschedulable


def test_a_report_shows_each_answer_and_when_it_changes() -> None:
    waiting = FILE.replace(
        "  - {type: hasLabel, name: done, config: {key: done}}",
        "  - {type: wait, name: done, config: {duration: 10m}}",
    )
    world = world_of([labelled("a", "plain", go="true")])
    passes(world, theirs(waiting), 2)

    plan = passes(world, theirs(waiting))

    (report,) = reports_of(plan_of(plan))
    assert [(one.next, one.check, one.verdict, one.taken) for one in report.steps] == [
        ("operational", "done", "failed", False)
    ]
    (answer,) = report.answers
    assert answer.until is not None
    assert plan.next_change == answer.until
    (row,) = to_report(plan, rehearsed=False).document["nodes"]
    keys = list(row)
    assert keys[keys.index("checks") + 1] == "workflows"
    assert row["workflows"] == [
        {
            "profile": "plain",
            "stateBefore": "in-maintenance",
            "state": "in-maintenance",
            "since": to_text(report.since),
            "waits": None,
            "transitions": [{"to": "operational", "check": "done", "answer": "failed", "taken": False}],
            "checks": [
                {"check": "done", "answer": "failed", "reason": answer.reason, "until": to_text(answer.until)}
            ],
        }
    ]
    assert plan_of(plan).holds[0].reason.startswith("profile plain: done: ")


def test_the_report_for_people_names_each_workflow_and_its_state() -> None:
    world = with_pod("draining")
    plan = passes(world, theirs(), 2)

    shown = as_text(to_report(plan, rehearsed=False))

    assert "draining: in-maintenance since Sat 2026-11-21 12:00 UTC" in shown
    assert "the node is being drained" in shown


def test_no_workflow_begins_while_a_person_holds_the_node() -> None:
    world = world_of([labelled("a", "plain", go="true")])
    word = {"by": "ann", "at": "2026-11-21T11:00:00Z", "reason": "release day"}
    world.cluster.annotate("a", "cloud.sap/hold", json.dumps(word))

    plan = passes(world, theirs(), 2)

    assert states(world) == {"plain": "operational"}
    assert {hold.code for hold in plan_of(plan).holds} >= {"notHeld"}
    world.cluster.annotate("a", "cloud.sap/hold", None)
    passes(world, theirs(), 2)
    assert states(world) == {"plain": "in-maintenance"}


WORD = {"by": "ann", "at": "2026-11-21T11:00:00Z", "reason": "release day"}


def held_by_name(world: World, settings: Settings) -> Settings:
    world.cluster.annotate("a", "cloud.sap/hold", json.dumps(WORD))
    return settings


def held_with_all(world: World, settings: Settings) -> Settings:
    hold = PersonHold(Word("ann", scope="all"))
    world.cluster.ledger = replace(world.cluster.ledger, holds=(hold,))
    return settings


def finishing(world: World, settings: Settings) -> Settings:
    del world
    return settings.model_copy(update={"mode": Mode.FINISH})


@pytest.mark.parametrize("kept", [held_by_name, held_with_all, finishing])
def test_a_node_whose_profiles_may_not_begin_shows_their_worst_state(
    kept: Callable[[World, Settings], Settings],
) -> None:
    world = world_of([labelled("a", "plain", go="true")])
    passes(world, theirs())

    node = plan_of(passes(world, kept(world, theirs()), 2))

    assert world.cluster.nodes["a"].labels[STATE] == "maintenance-required"
    assert (node.before, node.after) == ("maintenance-required", "maintenance-required")
    assert [(one.profile, one.before, one.after) for one in reports_of(node)] == [
        ("plain", "maintenance-required", "maintenance-required")
    ]


@pytest.mark.parametrize("kept", [held_by_name, held_with_all, finishing])
def test_a_profile_that_may_not_begin_goes_back_when_its_cause_is_gone(
    kept: Callable[[World, Settings], Settings],
) -> None:
    world = world_of([labelled("a", "plain", go="true")])
    back = '{check: "!go", next: operational}'
    taking = "{check: go, trigger: keep && taint, next: in-maintenance}"
    settings = theirs(FILE.replace(taking, f"{taking}, {back}"))
    passes(world, settings)
    settings = kept(world, settings)
    passes(world, settings, 2)
    assert states(world) == {"plain": "maintenance-required"}

    world.cluster.label("a", "go", None)
    passes(world, settings, 2)

    assert states(world) == {"plain": "operational"}


def test_the_event_about_a_step_comes_after_its_patch() -> None:
    world = world_of([labelled("a", "plain", go="true")])

    passes(world, theirs())

    assert [call.what for call in world.api.done if call.what in ("notify", "patch_node")] == [
        "patch_node",
        "notify",
    ]


def test_a_step_that_is_refused_makes_no_event_that_says_it_was_taken() -> None:
    world = world_of([labelled("a", "plain", go="true")])

    def refuse(call: Call) -> None:
        if call.what == "patch_node":
            raise Forbidden("the policy does not name the key of a trigger", status=403)

    world.api.before_write = refuse
    look(world, theirs())

    assert "ChangedMaintenanceState" not in [one.notice.reason for one in world.cluster.events]


def test_a_person_may_ask_for_all_answers_in_the_log() -> None:
    world = world_of(
        [labelled("a", "plain"), labelled("b", "plain", **{"cloud.sap/maintenance-log-details": "true"})]
    )

    plan = passes(world, theirs())

    assert log_fields(plan_of(plan, "a"))["workflows"] == ["plain: operational"]
    assert log_fields(plan_of(plan, "b"))["workflows"] == [
        "plain: operational",
        "plain: go failed: the node has no label go",
    ]


def test_nodes_take_turns_by_a_lease_also_within_one_pass() -> None:
    turns = "duration: 1m, leaseName: turns, leaseNamespace: default"
    text = with_check(f"{{type: stagger, name: turn, config: {{{turns}}}}}").replace(
        "[{check: go, trigger: keep && taint, next", "[{check: turn, trigger: keep && taint, next"
    )
    world = world_of([labelled("a", "plain", go="true"), labelled("b", "plain", go="true")])

    plan = passes(world, theirs(text), 2)
    assert [states(world, name) for name in ("a", "b")] == [
        {"plain": "in-maintenance"},
        {"plain": "maintenance-required"},
    ]
    assert "node a has taken the Lease default/turns-0" in plan_of(plan, "b").holds[0].reason

    world.advance(timedelta(minutes=1))
    passes(world, theirs(text))
    assert states(world, "b") == {"plain": "in-maintenance"}


def test_a_lease_that_can_not_be_read_is_a_note_of_the_whole_cluster() -> None:
    turns = "duration: 1m, leaseName: turns, leaseNamespace: default"
    world = world_of([labelled("a", "plain")])

    def refuse(call: Call) -> None:
        if call.what == "lease":
            raise Forbidden("no", status=403, needs="get leases.coordination.k8s.io in default")

    world.api.before_read = refuse
    plan = passes(world, theirs(with_check(f"{{type: stagger, name: turn, config: {{{turns}}}}}")))

    (note,) = plan.notes
    assert note.startswith("no workflow takes the turn of the Lease default/turns-0, because it")
    assert note.endswith("needs get leases.coordination.k8s.io in default")


def test_a_lease_that_may_not_be_taken_is_one_event_and_a_hold_and_is_tried_less_and_less_often() -> None:
    turns = "duration: 1m, leaseName: turns, leaseNamespace: default"
    text = with_check(f"{{type: stagger, name: turn, config: {{{turns}}}}}").replace(
        "check: go,", "check: turn,"
    )
    world, tried = world_of([labelled("a", "plain", go="true")]), list[timedelta]()
    settings, begin = theirs(text), world.now

    def refuse(call: Call) -> None:
        if call.what == "take_lease":
            tried.append(world.now - begin)
            raise Forbidden("leases is forbidden: may not create", status=403)

    world.api.before_write = refuse
    for _ in range(120):
        plan, _ = look(world, settings)
        world.advance(timedelta(seconds=1))

    assert [moment.seconds for moment in tried] == [0, 10, 30, 70]
    (hold,) = plan_of(plan).holds
    assert (hold.code, "may not create" in hold.reason) == ("nodeWritable", True)
    assert [one.notice.reason for one in world.cluster.events] == ["MaintenanceNotWritten"]


def test_nodes_that_enter_in_one_pass_count_for_the_next_one() -> None:
    text = with_check("{type: maxMaintenance, name: few, config: {max: 1}}").replace(
        "[{check: go, trigger: keep && taint, next", "[{check: few, trigger: keep && taint, next"
    )
    world = world_of([labelled(name, "plain", go="true") for name in "abc"])

    passes(world, theirs(text), 3)

    inside = [name for name in "abc" if states(world, name) == {"plain": "in-maintenance"}]
    assert inside == ["a"]


TOLD = (
    FILE.replace(
        "profiles:\n",
        """  notify:
  - type: slack
    name: tell
    config: {hook: 'http://127.0.0.1:1/', channel: c, message: '{{ .Node.Name }} {{ .State }}'}
    schedule: {type: periodic, config: {interval: 1h}}
profiles:
""",
        1,
    )
    .replace("  maintenance-required:\n", "  maintenance-required:\n    notify: tell\n", 1)
    .replace("    enter: drain && seen\n", "    enter: drain && seen\n    notify: tell\n", 1)
)


def told(plan: Plan) -> list[str]:
    return [one.text for node in plan.nodes for one in node.todo.messages]


def test_a_notification_of_a_state_is_sent_once_and_its_time_is_in_the_data() -> None:
    world = world_of([labelled("a", "plain")])
    settings = theirs(TOLD)
    label(world, "go")
    assert told(passes(world, settings)) == []
    # The pass that finds it also takes the next step.
    now = world.now
    plan = passes(world, settings)

    assert told(plan) == ["a maintenance-required"]
    assert data(world)["Notifications"] == {"tell": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    assert states(world) == {"plain": "in-maintenance"}
    assert told(passes(world, settings, 3)) == []
    before = world.cluster.nodes["a"].resource_version
    assert told(passes(world, settings)) == []
    assert world.cluster.nodes["a"].resource_version == before


def test_a_drain_delays_no_notification() -> None:
    world = with_pod("draining")
    world.cluster.bare_pods_stop_after = timedelta(hours=1)
    passes(world, theirs(TOLD))
    plan = passes(world, theirs(TOLD))

    assert reports_of(plan_of(plan))[0].waits
    assert told(plan) == ["a in-maintenance"]
    assert told(passes(world, theirs(TOLD))) == []


def test_a_notification_is_sent_while_a_person_holds_the_node() -> None:
    world = world_of([labelled("a", "plain", go="true")])
    passes(world, theirs(TOLD))
    world.cluster.annotate("a", "cloud.sap/hold", json.dumps({"by": "alice", "at": "2026-11-21T12:00:00Z"}))

    assert told(passes(world, theirs(TOLD))) == ["a maintenance-required"]
    assert states(world) == {"plain": "maintenance-required"}


def test_a_node_whose_data_can_not_be_read_sends_nothing() -> None:
    world = world_of([labelled("a", "plain")])
    world.cluster.annotate("a", DATA, '{"Profiles":{"plain":{"Current":"maintenance-required"}},"More":1}')

    assert told(passes(world, theirs(TOLD))) == []


def test_what_a_template_reads_of_a_node_is_read() -> None:
    world = world_of([builders.node("a", labels={PROFILE: "plain", "go": "true"}, annotations={"x/y": "z"})])
    settings = theirs(TOLD.replace("{{ .State }}", '{{ index .Node.Annotations "x/y" }}', 1))
    passes(world, settings)

    assert told(passes(world, settings)) == ["a z"]


def test_the_next_pass_comes_when_the_next_notification_is_due() -> None:
    world = world_of([labelled("a", "plain", go="true")])
    hourly, later = "{type: periodic, config: {interval: 1h}}", "{type: oneshot, config: {delay: 5m}}"
    settings = theirs(TOLD.replace(hourly, later))
    passes(world, settings)
    label(world, "go", "false")
    changed = world.now - timedelta(seconds=1)
    plan = passes(world, settings)

    assert told(plan) == []
    assert plan.next_change == changed + timedelta(minutes=5)
    world.advance(plan.next_change - world.now)
    assert told(passes(world, settings)) == ["a maintenance-required"]


class _Kept:
    """An outbox that remembers the ids of messages."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def keep(self, messages: Sequence[ProfileMessage]) -> None:
        self.ids += [one.id for one in messages]


def test_a_message_about_a_node_that_can_not_be_written_keeps_its_id() -> None:
    world, outbox = world_of([labelled("a", "plain", go="true")]), _Kept()
    passes(world, theirs(TOLD))

    def refuse(write: Call) -> None:
        if write.what == "patch_node":
            raise Conflict("somebody else has written it", status=409)

    world.api.before_write = refuse
    for _ in range(2):
        run_pass(replace(world.outside, outbox=outbox), theirs(TOLD), world.now)
        world.advance(timedelta(minutes=1))
    world.api.before_write = lambda write: None
    for _ in range(2):
        run_pass(replace(world.outside, outbox=outbox), theirs(TOLD), world.now)

    assert len(outbox.ids) > 1
    assert len(set(outbox.ids)) == 1
    assert list(data(world)["Notifications"]) == ["tell"]


@pytest.mark.parametrize("trigger", ["eviction", "uncordon"])
def test_no_workflow_starts_in_a_pool_that_aks_upgrades_nor_uncordons_its_node(trigger: str) -> None:
    before, after = "eviction, name: uncordon, config: {action: uncordon}", "uncordon, name: uncordon"
    settings = theirs(FILE.replace(before, after) if trigger == "uncordon" else FILE)
    nodes = [labelled(name, "draining", agentpool="np") for name in ("a", "b")]
    world = world_of(nodes, [builders.pod("web")])

    def upgrade(*, on: bool) -> None:
        for key, value in builders.IN_UPGRADE.items():
            world.cluster.annotate("a", key, value if on else None)

    label(world, "go")
    passes(world, settings, 4)
    assert world.cluster.nodes["a"].unschedulable
    upgrade(on=True)
    label(world, "done")
    label(world, "go", "false")
    label(world, "go", name="b")
    plan = passes(world, settings, 4)

    upgrades = "AKS upgrades pool np"
    assert {node.node: [hold.reason for hold in node.holds] for node in plan.nodes} == {
        "a": [upgrades, f"profile draining: {upgrades}"],
        "b": [upgrades],
    }
    assert [name for name, node in world.cluster.nodes.items() if node.unschedulable] == ["a"]
    upgrade(on=False)
    passes(world, settings, 4)
    assert [name for name, node in world.cluster.nodes.items() if node.unschedulable] == ["b"]
