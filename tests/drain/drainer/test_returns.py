"""Pods that come back to the cordoned node: each is evicted once, then it is named and left."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.drain.drainer import parts
from reconciler.drain.filters import RETURNS, RETURNS_TOLERATING
from reconciler.model.drains import DrainOptions, Phase
from reconciler.model.values import replace
from reconciler.simulation.workloads import Workload
from tests.drain.drainer.driving import START, Drive, Scene

LATER = timedelta(minutes=20)


def _scene(*, tolerant: bool = True, count: int = 1) -> Scene:
    """A node whose agents come back: they tolerate the cordon, or their template names the node."""
    scene = Scene()
    scene.add_node("a", cordoned=True)
    scene.cluster.replace_node(replace(scene.cluster.nodes["a"], labels={"agentpool": "of-a"}))
    scene.deployment("plain", "a", 3)
    agents = Workload("shop", "agent", replicas=count, pools=("of-a",), tolerates_cordon=tolerant)
    agents = replace(agents, node_name="" if tolerant else "a")
    made = [
        replace(agents.pod(1000 + number), node="a", phase="Running", ready=True) for number in range(count)
    ]
    scene.cluster.adopt(agents, *made)
    return scene


def _agents(scene: Scene) -> int:
    return sum(one.pod.startswith("shop/agent-") for one in scene.requests)


@pytest.mark.parametrize("count", [1, 6])
def test_a_pod_that_tolerates_the_cordon_is_evicted_once_and_named(count: int) -> None:
    scene = _scene(count=count)
    drive = Drive(scene)
    drive.start("a")
    ended = drive.run()["a"]

    assert ended.phase is Phase.DRAINED
    assert _agents(scene) == count
    assert len(ended.kept) == len(ended.returned) == count
    assert {one.because for one in ended.kept} == {RETURNS_TOLERATING}
    assert (ended.total, ended.gone) == (3 + count, 3 + count)


def test_a_pod_that_comes_back_without_a_toleration_is_evicted_a_few_times() -> None:
    scene = _scene(tolerant=False)
    drive = Drive(scene)
    drive.start("a")
    ended = drive.run(120)["a"]

    assert ended.phase is Phase.DRAINED
    assert _agents(scene) == 1 + parts.MOST
    assert [one.because for one in ended.kept] == [RETURNS]


def test_a_pod_that_came_back_is_not_evicted_by_the_next_attempt() -> None:
    scene = _scene()
    scene.add_budget("plain", max_unavailable=0)
    drive = Drive(scene)
    drive.start("a", timeout=LATER)
    assert drive.run()["a"].phase is Phase.TIMED_OUT
    drive.start("a", since=START + LATER, timeout=LATER)
    drive.run()

    assert _agents(scene) == 1


def test_another_process_knows_it_by_when_it_was_created() -> None:
    scene = _scene()
    scene.add_budget("plain", max_unavailable=0)
    first = Drive(scene)
    first.start("a")
    first.run(60)
    first.stop("a")
    second = Drive(scene)
    second.start("a", options=DrainOptions(begun=START))
    found = second.run(120)["a"]

    assert _agents(scene) == 1
    assert [one.because for one in found.kept] == [RETURNS_TOLERATING]


def test_a_pod_that_tolerates_the_cordon_and_was_there_before_is_evicted() -> None:
    scene = _scene()
    (agent,) = (pod for pod in scene.there("a") if pod.name.startswith("agent"))
    scene.change_pod(replace(agent, created=START - timedelta(days=1)))
    drive = Drive(scene)
    drive.start("a", options=DrainOptions(begun=START))
    drive.run()

    assert agent.uid in {one.uid for one in scene.requests}
    assert _agents(scene) == 1
