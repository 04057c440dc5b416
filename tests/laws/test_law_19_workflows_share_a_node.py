"""Law 19 for workflows: whatever people do, nodes are drained only while cordoned, and for one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.record import State
from reconciler.settings.load import parse_settings
from reconciler.simulation.clock import Actor
from reconciler.simulation.world import World
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.searching import examples
from tests.support.worlds import carry_on, look, starts_on_open_nodes, world_of

PREFIX = "cloud.sap"
DATA = f"{PREFIX}/maintenance-data"
FILE = """\
instances:
  check:
  - {type: hasLabel, name: one, config: {key: one, value: "true"}}
  - {type: hasLabel, name: two, config: {key: two, value: "true"}}
  - {type: maxMaintenance, name: few, config: {max: 1}}
  trigger:
  - {type: drain, name: drain}
  - {type: cordon, name: cordon}
  - {type: uncordon, name: uncordon}
profiles:
- name: first
  operational: {transitions: [{check: one, trigger: cordon, next: maintenance-required}]}
  maintenance-required:
    transitions:
    - {check: one && few, next: in-maintenance}
    - {check: "!one", trigger: uncordon, next: operational}
  in-maintenance: {enter: drain, transitions: [{check: "!one", trigger: uncordon, next: operational}]}
- name: second
  operational: {transitions: [{check: two, trigger: drain, next: in-maintenance}]}
  in-maintenance: {enter: cordon, transitions: [{check: "!two", trigger: uncordon, next: operational}]}
"""
SETTINGS = parse_settings(FILE, "their.yaml")
NAMES = ("a", "b")

Step = Callable[[World], None]


def _label(name: str, key: str, value: str) -> Step:
    return lambda world: world.cluster.label(name, key, value)


def _cordon(name: str, on: bool) -> Step:
    return lambda world: world.cluster.cordon(name, on=on)


def _restart(world: World) -> None:
    world.restart()


def _nothing(world: World) -> None:
    del world


def _pod(name: str, number: int) -> Step:
    def add(world: World) -> None:
        if not world.cluster.nodes[name].unschedulable:
            world.cluster.add_pod(builders.pod(f"late-{number}", name))

    return add


names = st.sampled_from(NAMES)
steps = st.one_of(
    st.builds(_label, names, st.sampled_from(("one", "two")), st.sampled_from(("true", "false"))),
    st.builds(_cordon, names, st.booleans()),
    st.builds(_pod, names, st.integers(1, 3)),
    st.just(_restart),
)


def inside(world: World, name: str) -> list[str]:
    data = json.loads(world.cluster.nodes[name].annotations[DATA])
    return [
        profile for profile, kept in data["Profiles"].items() if kept["Current"] == State.IN_MAINTENANCE.value
    ]


INSIDE, DRAINED = Hits(), Hits()


@INSIDE.at_least(100)
@DRAINED.at_least(8)
@settings(max_examples=examples(60))
@given(st.lists(steps, max_size=14))
def test_nodes_are_drained_only_while_cordoned_and_for_one_profile_at_a_time(history: list[Step]) -> None:
    labels = {f"{PREFIX}/maintenance-profile": "first--second"}
    world = world_of(
        [builders.node(name, labels=labels) for name in NAMES],
        [builders.pod(f"web-{name}", name) for name in NAMES],
    )
    for step in (*history, *(_nothing,) * 6):
        step(world)
        look(world, SETTINGS)
        carry_on(world)
        world.advance(timedelta(seconds=1))
        for name in NAMES:
            found = inside(world, name)
            INSIDE.count(len(found))
            assert len(found) <= 1

    DRAINED.count(len(world.log.of(Actor.US, "drain ordered")))
    assert starts_on_open_nodes(world) == []
    for name in NAMES:
        world.cluster.label(name, "one", "false")
        world.cluster.label(name, "two", "false")
        world.cluster.cordon(name)
    for _ in range(8):
        look(world, SETTINGS)
        carry_on(world)
        world.advance(timedelta(seconds=45))
    assert [inside(world, name) for name in NAMES] == [[], []]
    before = world.api.writes
    look(world, SETTINGS)
    assert world.api.writes == before
