"""alterHypervisor in whole passes: what it writes to the Hypervisor of a node, and what it waits for."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from reconciler.features.workflows.services import NAME, SPEC, STATUS, Hypervisor, Value
from reconciler.features.workflows.simulation import HYPERVISORS
from reconciler.model.errors import Conflict, Forbidden
from reconciler.model.outcome import Outcome, Result
from reconciler.model.values import replace
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.worlds import carry_on, look, world_of

DATA = "cloud.sap/maintenance-data"
SETTINGS = parse_settings(
    """\
intervals: {requeue: 1s}
instances:
  check:
  - {type: checkHypervisor, name: evicted, config: {evicted: true}}
  - {type: hasLabel, name: go, config: {key: go}}
  trigger:
  - {type: alterHypervisor, name: out, config: {maintenance: auto, skipTests: true}}
  - {type: alterHypervisor, name: back, config: {maintenance: ""}}
  - {type: alterAnnotation, name: used, config: {key: approved, remove: true}}
  - {type: drain, name: drain}
  - {type: uncordon, name: uncordon}
profiles:
- name: default
  operational:
    transitions: [{check: go, trigger: used && out, next: maintenance-required}]
  maintenance-required:
    transitions: [{check: evicted, trigger: drain && back, next: in-maintenance}]
  in-maintenance:
    transitions: [{check: "!go", trigger: uncordon, next: operational}]
""",
    "their.yaml",
)


def hypervisor(name: str = "a", **status: Value) -> Hypervisor:
    return Hypervisor(name, f"of-{name}", status={**STATUS, **status})


def world_with(*hypervisors: Hypervisor) -> World:
    nodes = [builders.node(name, labels={"go": ""}, annotations={"approved": "yes"}) for name in "ab"]
    world = world_of(nodes, [builders.pod("x", "a")])
    if hypervisors:
        world.clients[NAME].put_hypervisors(*hypervisors)
    return world


def spec(world: World, name: str = "a") -> dict[str, object]:
    """The fields of the spec that were changed."""
    found = world.cluster.others[HYPERVISORS][name].spec
    return {key: value for key, value in found.items() if value != SPEC[key]}


def state(world: World, name: str = "a") -> str:
    kept = json.loads(world.cluster.nodes[name].annotations[DATA])
    return str(kept["Profiles"]["default"]["Current"])


def run(world: World, count: int = 1, settings: Settings = SETTINGS) -> tuple[Outcome, ...]:
    for _ in range(count):
        outcomes = look(world, settings)[1]
        carry_on(world)
        world.advance(timedelta(seconds=1))
    return outcomes


def test_the_fields_are_set_before_the_step_and_on_the_hypervisor_of_the_node_only() -> None:
    world = world_with(hypervisor("a"))

    outcomes = run(world)

    assert [(one.node, one.action) for one in outcomes if one.node == "a"] == [
        ("a", "change hypervisor"),
        ("a", "move to maintenance-required"),
    ]
    assert spec(world) == {"maintenance": "auto", "skipTests": True}
    assert (state(world, "a"), state(world, "b")) == ("maintenance-required", "operational")


def test_a_workflow_waits_for_its_hypervisor_and_goes_to_its_end() -> None:
    world = world_with(hypervisor("a"))
    run(world, 3)
    assert state(world) == "maintenance-required"

    changed = replace(world.cluster.others[HYPERVISORS]["a"], status={**STATUS, "evicted": True})
    world.clients[NAME].put_hypervisors(changed)
    run(world, 5)

    assert (state(world), spec(world)) == ("in-maintenance", {"skipTests": True})
    assert world.cluster.nodes["a"].unschedulable


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (hypervisor("other"), "there is no Hypervisor a"),
        (None, "the Hypervisors can't be read: the cluster has no kind Hypervisor of kvm.cloud.sap/v1"),
    ],
)
def test_a_chain_whose_hypervisor_is_missing_changes_nothing(there: Hypervisor | None, why: str) -> None:
    world = world_with(*([there] if there is not None else []))
    run(world)
    before = len(world.api.done)

    plan, outcomes = look(world, SETTINGS)

    assert plan.nodes[0].holds[0].reason == f"profile default: {why}"
    assert (len(world.api.done), outcomes) == (before, ())
    # The trigger before it would have taken the approval away.
    assert "approved" in world.cluster.nodes["a"].annotations
    assert state(world) == "operational"


def test_a_node_whose_hypervisor_goes_away_is_not_drained_again_and_again() -> None:
    settings = parse_settings(
        """\
intervals: {requeue: 1s}
instances:
  trigger:
  - {type: alterHypervisor, name: out, config: {maintenance: auto}}
  - {type: drain, name: drain}
profiles:
- name: default
  operational:
    transitions: [{next: in-maintenance}]
  in-maintenance:
    enter: drain && out
""",
        "their.yaml",
    )
    world = world_with(hypervisor("a"), hypervisor("b"))
    run(world, 2, settings)
    world.cluster.others[HYPERVISORS] = {}
    run(world, 3, settings)
    assert "x" not in {pod.name for pod in world.cluster.pods.values()}
    before = len(world.api.done)

    run(world, 3, settings)
    assert len(world.api.done) == before

    world.clients[NAME].put_hypervisors(hypervisor("a"))
    run(world, 4, settings)
    assert spec(world) == {"maintenance": "auto"}


@pytest.mark.parametrize("error", [Forbidden("needs patch hypervisors"), Conflict("created again")])
def test_a_node_whose_hypervisor_is_not_changed_takes_no_step(error: Exception) -> None:
    world = world_with(hypervisor("a"), hypervisor("b"))

    def refuse(call: Call) -> None:
        if (call.what, call.node) == ("write_hypervisor", "a"):
            raise error

    world.api.before_write = refuse
    outcomes = run(world)

    assert [one.action for one in outcomes if one.node == "a"] == ["change hypervisor"]
    assert outcomes[0].result is not Result.DONE
    assert DATA not in world.cluster.nodes["a"].annotations
    assert state(world, "b") == "maintenance-required"


def test_a_pass_that_is_killed_between_the_hypervisor_and_the_step_is_repeated() -> None:
    world = world_with(hypervisor("a"))

    def kill(call: Call) -> None:
        if call.what == "write_hypervisor":
            raise ProcessKilled

    world.api.after_write = kill
    with pytest.raises(ProcessKilled):
        look(world, SETTINGS)
    world.api.after_write = None
    world.restart()

    outcomes = run(world)

    assert [one.action for one in outcomes if one.node == "a"] == ["move to maintenance-required"]
    assert (state(world), spec(world)) == ("maintenance-required", {"maintenance": "auto", "skipTests": True})


def test_another_hypervisor_with_the_same_name_is_not_changed() -> None:
    world = world_with(hypervisor("a"))

    def recreated(call: Call) -> None:
        if call.what == "write_hypervisor":
            world.clients[NAME].put_hypervisors(replace(hypervisor("a"), uid="another"))

    world.api.before_write = recreated
    outcomes = run(world)

    assert [(one.action, one.result) for one in outcomes if one.node == "a"] == [
        ("change hypervisor", Result.LATER)
    ]
    assert spec(world) == {}
