"""Pods that try to harm others, and pods that come back to the cordoned node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.drain.drainer import Limits
from reconciler.drain.drainer.messages import PodNews, WatchPods
from reconciler.drain.filters import RETURNS, RETURNS_TOLERATING
from reconciler.model.drains import MOST_RETURNS, Comebacks, DrainOptions, Escalation, Grace, Phase, Seen
from reconciler.model.errors import ReconcilerError, TooManyRequests
from reconciler.model.node import Condition
from reconciler.model.pod import LONGEST_GRACE, Owner, Pod, PodSpec, grace_seconds
from reconciler.model.values import replace
from reconciler.simulation.workloads import Workload
from tests.drain.drainer.driving import START, Drive, Scene
from tests.support.searching import examples

SOON = START + timedelta(minutes=15)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
HUGE = (10**10, 10**12, 2**63 - 1, 10**30)
NUMBERS = (-(2**63), -1, 0, 1, 30, 3600, *HUGE)
MOMENTS = (None, FIRST, datetime(1970, 1, 1, tzinfo=UTC), START, SOON, datetime(9000, 1, 1, tzinfo=UTC), LAST)
ALL_STEPS = Escalation(
    warn_after=timedelta(minutes=1),
    delete_before_deadline=True,
    deadline=SOON,
    force_stuck_after=timedelta(minutes=5),
)


def _two_nodes() -> Scene:
    scene = Scene()
    for node in ("a", "b"):
        scene.add_node(node, cordoned=True)
    scene.deployment("web", "b", 5)
    return scene


def _hostile(scene: Scene, spec: PodSpec, until: datetime | None = None) -> Pod:
    (pod,) = scene.deployment("evil", "a")
    changed = replace(pod, spec=spec, deleting_until=until)
    scene.change_pod(changed)
    return changed


@pytest.mark.parametrize("grace", HUGE)
def test_a_grace_without_end_does_not_end_the_other_drains(grace: int) -> None:
    scene = _two_nodes()
    # A budget that never allows a disruption keeps the pod until the deadline.
    _hostile(scene, PodSpec(grace=grace))
    scene.add_budget("evil", max_unavailable=0)
    drive = Drive(scene).start("a", escalation=ALL_STEPS)
    drive.start("b")
    progress = drive.run()

    assert progress["b"].phase is Phase.DRAINED
    assert progress["a"].phase is Phase.DRAINED
    # The grace does not fit before the deadline, so the pod is deleted at once, with what is left as grace.
    (deletion,) = [one for one in scene.requests if one.verb == "delete"]
    assert deletion.grace is not None
    assert deletion.at + timedelta(seconds=deletion.grace) <= SOON


@pytest.mark.parametrize("grace", HUGE)
def test_a_grace_without_end_is_capped_by_the_setting(grace: int) -> None:
    scene = _two_nodes()
    pod = _hostile(scene, PodSpec(grace=grace))

    assert (
        Drive(scene)
        .start("a", options=DrainOptions(grace=Grace(longest=timedelta(minutes=2))))
        .run()["a"]
        .phase
        is Phase.DRAINED
    )
    assert [one.grace for one in scene.requests if one.uid == pod.uid] == [120]


@pytest.mark.parametrize(
    ("found", "means"),
    [(None, 30), (0, 0), (30, 30), (-1, 1), (-(2**63), 1), *((number, LONGEST_GRACE) for number in HUGE)],
)
def test_a_grace_is_at_most_a_year(found: int | None, means: int) -> None:
    assert grace_seconds(found) == means


@settings(max_examples=examples(200), deadline=None)
@given(
    grace=st.sampled_from(NUMBERS),
    priority=st.sampled_from((-(2**31), 0, 2**31 - 1, 10**30)),
    until=st.sampled_from(MOMENTS),
    deadline=st.sampled_from(MOMENTS),
    since=st.sampled_from((FIRST, START, LAST)),
    timeout=st.sampled_from((timedelta(minutes=30), timedelta(days=3650), timedelta.max)),
    after=st.sampled_from((timedelta(), timedelta(minutes=5), timedelta.max)),
    ready=st.booleans(),
)
def test_no_number_of_a_pod_raises_or_hinders_another_drain(
    grace: int,
    priority: int,
    until: datetime | None,
    deadline: datetime | None,
    since: datetime,
    timeout: timedelta,
    after: timedelta,
    ready: bool,
) -> None:
    scene = _two_nodes()
    if not ready:
        scene.cluster.set_condition("a", Condition("Ready", "Unknown"))
    pod = _hostile(scene, PodSpec(priority), until)
    # Only what the drainer sees: the simulated kubelet need not count with it.
    scene.cluster.pods[pod.uid] = replace(scene.cluster.pods[pod.uid], spec=PodSpec(priority, grace=grace))
    drive = Drive(scene)
    steps = Escalation(
        warn_after=after, delete_before_deadline=True, deadline=deadline, force_stuck_after=after
    )
    options = DrainOptions(skip_terminating_after=after, grace=Grace(longest=timedelta(minutes=1)))
    drive.start("a", since=since, timeout=timeout, escalation=steps, options=options, node_ready=ready)
    drive.start("b")

    assert drive.run(120)["b"].phase is Phase.DRAINED


@pytest.mark.parametrize("seconds", [1e300, float("inf"), -5.0, 10.0**9])
@pytest.mark.parametrize("causes", [(), ("budget evil needs",)])
def test_an_answer_can_ask_for_a_short_pause_only(seconds: float, causes: tuple[str, ...]) -> None:
    scene = _two_nodes()
    busy = [TooManyRequests("busy", status=429, retry_after=seconds, causes=causes)]

    def trouble(verb: str, _: Pod | None) -> ReconcilerError | None:
        return busy.pop() if verb == "evict" and busy else None

    scene.trouble = trouble
    drive = Drive(scene).start("b")

    assert drive.run()["b"].phase is Phase.DRAINED
    assert drive.now - START < Limits().longest_wait + timedelta(minutes=1)


class _Broken(dict[str, str]):
    """Annotations that can't be read."""

    def __contains__(self, key: object) -> bool:
        raise OverflowError(f"{key}: out of range")


def test_an_exception_about_one_pod_fails_the_drain_of_its_node_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = _two_nodes()
    drive = Drive(scene).start("a")
    drive.start("b")
    broken = Pod("shop", "evil", "evil#0", "a", annotations=_Broken(), phase="Running")
    (number,) = [one.watch for _, one in drive.commands if isinstance(one, WatchPods) and one.node == "a"]
    drive.at(0, lambda: drive.hear(PodNews("a", number, broken)))
    progress = drive.run()

    assert progress["b"].phase is Phase.DRAINED
    assert progress["a"].phase is Phase.FAILED
    assert "OverflowError" in progress["a"].error
    assert any(one.exc_info for one in caplog.records)


class _Unmatchable(dict[str, str]):
    """Labels that no selector of a budget can be matched with."""

    def get(self, key: str, default: object = None) -> Any:
        if key == "app":
            raise OverflowError("out of range")
        return default

    def __getitem__(self, key: str) -> str:
        return str(self.get(key))


def test_a_drain_that_fails_keeps_no_budget_from_the_others() -> None:
    scene = Scene()
    for node in ("a", "b"):
        scene.add_node(node, cordoned=True)
    (pod,) = scene.deployment("web", "a")
    scene.deploy("web", replace(pod, name="web-b", uid="web-b#0", node="b"))
    scene.add_budget("web", max_unavailable=1)
    drive = Drive(scene, limits=replace(Limits(), budgets_from=1)).start("a")
    drive.start("b")
    broken = Pod(
        "shop", "worse", "worse#0", "a", _Unmatchable(), phase="Running", owner=Owner("ReplicaSet", "w")
    )
    (number,) = [one.watch for _, one in drive.commands if isinstance(one, WatchPods) and one.node == "a"]
    # It is the second one, so the budget is reserved for the eviction of the first.
    for one in (pod, broken):
        drive.at(0, partial(drive.hear, PodNews("a", number, one)))
    progress = drive.run()

    assert progress["a"].phase is Phase.FAILED
    assert progress["b"].phase is Phase.DRAINED
    assert scene.requests[0].node == "b"


LATER = timedelta(minutes=20)
ALL_DAY = timedelta(days=1)


def _scene(*, tolerant: bool = True, count: int = 1) -> Scene:
    """A node whose agents come back: they tolerate the cordon, or their template names the node."""
    scene = Scene("a")
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
    ended = Drive(scene).start("a").run()["a"]

    assert ended.phase is Phase.DRAINED
    assert _agents(scene) == count
    assert len(ended.kept) == len(ended.returned) == count
    assert {one.because for one in ended.kept} == {RETURNS_TOLERATING}
    assert (ended.total, ended.gone) == (3 + count, 3 + count)


def test_a_pod_that_comes_back_without_a_toleration_is_evicted_a_few_times() -> None:
    scene = _scene(tolerant=False)
    ended = Drive(scene).start("a").run(120)["a"]

    assert ended.phase is Phase.DRAINED
    assert _agents(scene) == 1 + MOST_RETURNS
    assert [one.because for one in ended.kept] == [RETURNS]


def test_a_pod_that_came_back_is_not_evicted_by_the_next_attempt() -> None:
    scene = _scene()
    scene.add_budget("plain", max_unavailable=0)
    drive = Drive(scene).start("a", timeout=LATER)
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
    second.start("a", options=DrainOptions(comebacks=Comebacks(START)))
    found = second.run(120)["a"]

    assert _agents(scene) == 1
    assert [one.because for one in found.kept] == [RETURNS_TOLERATING]


@pytest.mark.parametrize(("created", "evictions"), [(-10, 1 + MOST_RETURNS), (10, MOST_RETURNS)])
def test_a_pod_that_is_younger_than_the_drain_came_back(created: int, evictions: int) -> None:
    """The process that evicted it died before it could say so."""
    scene = _scene(tolerant=False)
    (agent,) = (pod for pod in scene.there("a") if pod.name.startswith("agent"))
    scene.change_pod(replace(agent, created=START + timedelta(seconds=created)))
    scene.clock.advance(START + timedelta(minutes=1))
    ended = Drive(scene).start("a", options=DrainOptions(comebacks=Comebacks(START))).run(120)["a"]

    assert _agents(scene) == evictions
    assert [one.because for one in ended.kept] == [RETURNS]


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("lives", [0.5, 1.0, 9.0])
def test_however_many_processes_drain_the_node_a_pod_comes_back_as_often_as_for_one(
    count: int, lives: float
) -> None:
    """Each process ends soon after it has evicted, and the next one begins a minute later."""
    scene = _scene(tolerant=False, count=count)
    # Something else keeps the drain going.
    scene.add_budget("plain", max_unavailable=0)
    options, seen = DrainOptions(comebacks=Comebacks(START)), Seen()
    for _ in range(30):
        drive = Drive(scene).start("a", timeout=ALL_DAY, options=options, seen=seen)
        progress = drive.run((scene.now - START).total_seconds() + lives)["a"]
        seen = progress.seen
        drive.stop("a")
        scene.clock.advance(scene.now + timedelta(minutes=1))

    assert _agents(scene) <= count * (1 + MOST_RETURNS)
    assert [one.because for one in progress.kept] == [RETURNS] * count


def test_a_pod_that_tolerates_the_cordon_and_was_there_before_is_evicted() -> None:
    scene = _scene()
    (agent,) = (pod for pod in scene.there("a") if pod.name.startswith("agent"))
    scene.change_pod(replace(agent, created=START - timedelta(days=1)))
    Drive(scene).start("a", options=DrainOptions(comebacks=Comebacks(START))).run()

    assert agent.uid in {one.uid for one in scene.requests}
    assert _agents(scene) == 1
