"""Nodes with pods of one JobSet, LeaderWorkerSet or PodGroup are drained together."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from reconciler.model.errors import Unreachable
from reconciler.model.instructions import Deferral, Word, deferral_text
from reconciler.model.moments import to_text
from reconciler.model.pod import Owner
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from reconciler.starts.answer import beside_mate
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST, minutes, plan_of
from tests.support.worlds import carry_on, look, world_of

ALL = "budget: {maxUnavailable: 100%}"
JOB_SET = {"jobset.sigs.k8s.io/jobset-name": "train"}
LEADS = (180, 220)
"""In how many minutes the maintenance of the nodes `a` and `b` begins."""

ALONE, LATER = minutes(105), minutes(145)
"""When their drains start: an hour before the latest start, which is 15 minutes before the maintenance."""


def _request(minute: int) -> str:
    return json.dumps({"kind": "Reboot", "notBefore": to_text(NOW + minutes(minute))})


def _world(*, labels: dict[str, str] | None = None) -> World:
    asked = dict(zip("ab", LEADS, strict=True))
    nodes = [builders.node(name, annotations={REQUEST: _request(left)}) for name, left in asked.items()]
    world = world_of([*nodes, builders.node("c")])
    for name in "ab":
        pod = builders.pod(f"on-{name}", name)
        world.cluster.add_pod(replace(pod, labels=JOB_SET if labels is None else labels, phase="Running"))
    return world


def _play(world: World, text: str, until: int = 160) -> dict[str, timedelta]:
    """Run a pass every five minutes; return when each drain began, and check that each forecast came true."""
    policy = builders.settings(text)
    began: dict[str, timedelta] = {}
    planned: dict[str, timedelta] = {}
    while world.now < NOW + minutes(until):
        plan, _ = look(world, policy)
        for one in plan.nodes:
            if one.starts:
                began[one.node] = world.now - NOW
            elif one.schedule is not None and one.schedule.planned_start is not None:
                planned.setdefault(one.node, one.schedule.planned_start - NOW)
        carry_on(world)
        world.advance(minutes(5))
    assert {name: planned[name] for name in began} == began
    return began


def test_pods_of_one_job_set_are_disrupted_once() -> None:
    world = _world()
    logs = Owner("DaemonSet", "logs", "apps/v1")
    world.cluster.add_pod(replace(builders.pod("logs", "b"), namespace="kube-system", owner=logs))

    assert _play(world, ALL) == {"a": ALONE, "b": ALONE}
    asked = [one for one in world.api.pod_requests if one.granted]
    assert {one.node for one in asked} == {"a", "b"}
    assert {one.at - NOW for one in asked} == {ALONE}


def test_the_plan_says_why_they_start_together() -> None:
    plan, _ = look(_world(), builders.settings(ALL))
    schedule = plan_of(plan, "b").schedule

    assert schedule is not None
    assert schedule.because == "together with a, because both run pods of JobSet shop/train"
    assert schedule.planned_start == NOW + ALONE


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("text", "labels"),
    [
        pytest.param(f"{ALL}\ndrain: {{groupsTogether: 0s}}", JOB_SET, id="switched off"),
        pytest.param(f"{ALL}\ndrain: {{groupsTogether: 30m}}", JOB_SET, id="too far apart"),
        pytest.param("budget: {maxUnavailable: 1}", JOB_SET, id="no place for both"),
        pytest.param(ALL, {"app": "web"}, id="no group"),
    ],
)
def test_other_nodes_start_at_their_own_times(text: str, labels: dict[str, str]) -> None:
    world = _world(labels=labels)
    began = _play(world, text)

    assert began["a"] == ALONE
    assert began.get("b", LATER) >= LATER


def test_law_18_a_group_moves_no_pods_of_another_namespace_earlier() -> None:
    world = _world()
    world.cluster.add_pod(replace(builders.pod("theirs", "b"), namespace="bank", phase="Running"))

    assert _play(world, ALL) == {"a": ALONE, "b": LATER}


def test_a_node_whose_mate_does_not_start_starts_at_its_own_time() -> None:
    world = _world()
    world.advance(ALONE)
    joint = CaseSchedule(NOW + ALONE, because="together", with_node="a", alone=NOW + LATER)
    waits = "a does not start now, with which it was to start"
    own = CaseSchedule(NOW + LATER, because=waits)

    assert beside_mate(joint, (), begun=True, now=world.now) == (joint, ())
    assert beside_mate(joint, (), begun=False, now=world.now) == (own, ())
    # Until then, nobody knows whether the other one starts.
    assert beside_mate(joint, (), begun=False, now=world.now - minutes(1)) == (joint, ())


def test_a_start_that_a_person_put_off_is_not_brought_forward() -> None:
    world = _world()
    off = deferral_text(Deferral(Word("bob@laptop", NOW, NOW + minutes(150))))
    world.cluster.annotate("b", f"{PREFIX}/defer", off)

    assert _play(world, ALL) == {"a": ALONE, "b": minutes(150)}


def test_groups_that_can_t_be_read_hold_no_drain() -> None:
    world = _world()

    def silent(call: Call) -> None:
        if call.what == "pods" and not call.node:
            raise Unreachable("cut")

    world.api.before_read = silent
    plan, _ = look(world, builders.settings(ALL))

    assert any(note.startswith("groups of pods can't be read, so their nodes are not") for note in plan.notes)
    assert plan_of(plan, "b").schedule is not None
    assert _play(world, ALL) == {"a": ALONE, "b": LATER}


def test_a_pass_with_one_node_to_drain_reads_no_groups() -> None:
    world = world_of(
        [
            builders.node("a", annotations={REQUEST: _request(180)}),
            builders.node("b", annotations={REQUEST: '{"kind":"Freeze"}'}),
        ]
    )
    asked: list[str] = []
    world.api.before_read = lambda call: asked.append(f"{call.what} {call.node}")
    look(world, builders.settings(ALL))

    assert [one for one in asked if one.startswith("pods")] == ["pods a"]
