"""Pods that ask the drain to wait, by a label or a hook: for a limited time, and for themselves only."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.model.drains import Behavior, DrainOptions, Escalation, Phase, PodRule, PodWaits, WaitLimit
from reconciler.model.pod import Pod
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST, minutes
from tests.support.worlds import carry_on, look, world_of

HOUR = timedelta(hours=1)
WAIT = {"node-maintenance.dev/drain": "wait-completed", "app": "web"}


def _scene(*, grace: int = 30, marks: dict[str, str] | None = None) -> tuple[Scene, Pod]:
    scene = Scene("a")
    (pod,) = scene.deployment("web", "a", grace=grace)
    pod = replace(pod, labels=WAIT if marks is None else marks)
    scene.change_pod(pod)
    return scene, pod


def _options(*, deadline: datetime | None = None, longest: timedelta = HOUR) -> DrainOptions:
    return DrainOptions(waits=PodWaits(WaitLimit(START, longest, deadline)))


def _drain(scene: Scene, options: DrainOptions, *, timeout: timedelta = 3 * HOUR) -> Drive:
    return Drive(scene).start("a", timeout=timeout, options=options)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("marks", "asks"),
    [
        pytest.param(WAIT, {}, id="our label"),
        pytest.param({"cluster.x-k8s.io/drain": "wait-completed"}, {}, id="Cluster API's"),
        pytest.param({"node-maintenance.dev/wait-completed": "true"}, {}, id="our other label"),
        pytest.param({}, {"node-maintenance.dev/wait-completed": "true"}, id="our other annotation"),
        pytest.param({}, {"karpenter.sh/do-not-disrupt": "true"}, id="Karpenter's"),
        pytest.param(
            {}, {"cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion"}, id="the autoscaler's"
        ),
    ],
)
def test_without_a_deadline_the_limit_ends_the_wait(marks: dict[str, str], asks: dict[str, str]) -> None:
    scene, pod = _scene(marks=marks)
    scene.change_pod(replace(pod, annotations=asks))
    progress = _drain(scene, _options()).run(4 * 3600)["a"]

    (eviction,) = scene.requests
    assert (eviction.verb, eviction.uid, progress.phase) == ("evict", pod.uid, Phase.DRAINED)
    assert START + HOUR <= eviction.at < START + HOUR + timedelta(seconds=20)
    (step,) = progress.escalations
    assert "the wait ended at 2026-03-02T13:00:00Z (drain.podsMayWait)" in step


@pytest.mark.parametrize(
    ("says", "minutes_later"),
    [
        pytest.param("30m", 20, id="a duration from its start"),
        pytest.param("1h30m", 60, id="no longer than podsMayWait"),
        pytest.param("5m", 0, id="it is over"),
        pytest.param("soon", 0, id="no duration"),
        pytest.param("-5m", 0, id="a negative one"),
        pytest.param("0", 0, id="none"),
    ],
)
def test_do_not_disrupt_with_a_duration_counts_from_the_start_of_the_pod(
    says: str, minutes_later: int
) -> None:
    scene, pod = _scene(marks={})
    created = START - timedelta(minutes=10)
    scene.change_pod(replace(pod, annotations={"karpenter.sh/do-not-disrupt": says}, created=created))
    progress = _drain(scene, _options()).run(4 * 3600)["a"]

    (eviction,) = scene.requests
    expected = START + timedelta(minutes=minutes_later)
    assert (eviction.verb, progress.phase) == ("evict", Phase.DRAINED)
    assert expected <= eviction.at < expected + timedelta(seconds=20)


def test_while_it_waits_the_report_says_until_when() -> None:
    scene, _ = _scene()
    progress = _drain(scene, _options()).run(60)["a"]

    (blocker,) = progress.blockers
    assert blocker.because.endswith("says to wait until it has completed, until 2026-03-02T13:00:00Z at most")
    assert not progress.escalations


@pytest.mark.parametrize(("grace", "left"), [(30, 30), (300, 300), (10**12, 15 * 60)])
def test_the_grace_fits_before_the_deadline(grace: int, left: int) -> None:
    scene, _ = _scene(grace=grace)
    deadline = START + timedelta(minutes=15)
    progress = _drain(scene, _options(deadline=deadline)).run(4 * 3600)["a"]

    (eviction,) = scene.requests
    assert eviction.verb == "evict"
    assert abs(eviction.at - (deadline - timedelta(seconds=left))) < timedelta(seconds=20)
    assert "the platform takes the node at 2026-03-02T12:15:00Z" in progress.escalations[0]


def test_a_deadline_that_comes_nearer_ends_the_wait() -> None:
    scene, _ = _scene()
    drive = _drain(scene, _options())
    sooner = START + timedelta(minutes=10)
    drive.at(60, lambda: drive.start("a", timeout=3 * HOUR, options=_options(deadline=sooner)))
    drive.run(4 * 3600)

    assert scene.requests[0].at < sooner


def test_no_wait_is_granted_where_the_setting_says_so() -> None:
    scene, _ = _scene()

    assert _drain(scene, _options(longest=timedelta())).run(4 * 3600)["a"].phase is Phase.DRAINED
    assert scene.requests[0].at < START + timedelta(seconds=20)


def test_a_budget_still_refuses_after_the_wait() -> None:
    scene, _ = _scene()
    scene.add_budget("web", max_unavailable=0)
    progress = _drain(scene, _options()).run(4 * 3600)["a"]

    assert progress.phase is Phase.TIMED_OUT
    assert {one.verb for one in scene.requests} == {"evict"}
    assert not any(one.granted for one in scene.requests)
    assert progress.blockers[0].budget == "shop/web"
    # It did not go, so no step was taken.
    assert not progress.escalations


def test_a_rule_of_the_settings_has_no_limit() -> None:
    scene, _ = _scene()
    rule = PodRule("jobs", LabelSelector.of({"app": "web"}), behavior=Behavior.WAIT_COMPLETED)
    progress = _drain(scene, replace(_options(), rules=(rule,))).run(2.5 * 3600)["a"]

    assert progress.phase is Phase.RUNNING
    assert not scene.requests


def test_a_pod_that_completes_in_time_is_not_reported_as_overruled() -> None:
    scene, pod = _scene()
    drive = _drain(scene, _options())
    drive.at(600, lambda: scene.change_pod(replace(pod, phase="Succeeded", ready=False)))
    progress = drive.run(4 * 3600)["a"]

    assert progress.phase is Phase.DRAINED
    assert not progress.escalations
    assert scene.requests[0].at < START + timedelta(minutes=11)


def test_the_deadline_rule_may_delete_what_a_budget_keeps() -> None:
    scene, _ = _scene()
    scene.add_budget("web", max_unavailable=0)
    deadline = START + timedelta(minutes=15)
    drive = Drive(scene)
    steps = Escalation(delete_before_deadline=True, deadline=deadline)
    drive.start("a", timeout=HOUR, options=_options(deadline=deadline), escalation=steps)

    assert drive.run(4 * 3600)["a"].phase is Phase.DRAINED
    assert scene.requests[-1].verb == "delete"


def test_new_attempts_do_not_begin_the_wait_again() -> None:
    world = world_of([builders.node("a", annotations={REQUEST: builders.DRAIN_NOW}), builders.node("b")])
    (waiting,) = [replace(builders.pod("web", "a"), labels=WAIT, phase="Running")]
    world.cluster.add_pod(waiting)
    settings = builders.settings("drain: {timeout: 10m, podsMayWait: 45m}")
    for _ in range(60):
        look(world, settings)
        carry_on(world)
        world.advance(timedelta(minutes=1))

    assert [one.granted for one in world.api.pod_requests] == [True]
    went = world.api.pod_requests[0].at - NOW
    assert timedelta(minutes=45) <= went < timedelta(minutes=47)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finalizer_of_a_pod_that_has_ended_holds_no_node(phase: str) -> None:
    scene, pod = _scene(marks={"app": "web"})
    scene.cluster.finalizers.add(pod.uid)
    drive = _drain(scene, _options())

    def stop() -> None:
        scene.change_pod(replace(scene.cluster.pods[pod.uid], phase=phase, ready=False))

    drive.at(20, stop)
    progress = drive.run(4 * 3600)["a"]

    assert progress.phase is Phase.DRAINED
    gone = scene.requests[0].at + timedelta(seconds=pod.spec.grace)
    assert progress.finished is not None
    assert gone + timedelta(minutes=1) <= progress.finished < gone + timedelta(minutes=2)


def test_a_finalizer_of_a_pod_that_still_runs_is_waited_for() -> None:
    scene, pod = _scene(marks={"app": "web"})
    scene.cluster.finalizers.add(pod.uid)
    progress = _drain(scene, _options(), timeout=HOUR).run(4 * 3600)["a"]

    assert progress.phase is Phase.TIMED_OUT
    assert [blocker.pod for blocker in progress.blockers] == ["shop/web-0"]


HOOK = f"{PREFIX}/pre-drain.leader"
LIMIT = minutes(10)


def _hooked_scene() -> tuple[Scene, Pod]:
    scene = Scene("a")
    (pod,) = scene.deployment("web", "a")
    scene.deployment("other", "a")
    pod = replace(pod, annotations={HOOK: "team web", f"{PREFIX}/pre-uncordon.x": ""})
    scene.change_pod(pod)
    return scene, pod


def _hooked(longest: timedelta = LIMIT) -> DrainOptions:
    return DrainOptions(waits=PodWaits(held=WaitLimit(START, longest), called="hook"))


def test_a_hook_holds_its_own_pod_and_no_other() -> None:
    scene, pod = _hooked_scene()
    progress = _drain(scene, _hooked()).run(60)["a"]

    assert [one.uid == pod.uid for one in scene.requests] == [False]
    (blocker,) = progress.blockers
    assert blocker.because == (
        "its hook pre-drain.leader (team web) holds its eviction, until 2026-03-02T12:10:00Z at most"
    )


def test_the_pod_goes_when_its_owner_removes_the_annotation() -> None:
    scene, pod = _hooked_scene()
    drive = _drain(scene, _hooked())
    drive.at(120, lambda: scene.change_pod(replace(pod, annotations={})))
    progress = drive.run(3600)["a"]

    assert progress.phase is Phase.DRAINED
    assert abs(scene.requests[-1].at - START - minutes(2)) < timedelta(seconds=20)
    assert not progress.escalations


def test_the_pod_goes_after_the_time_limit_and_the_report_says_so() -> None:
    scene, pod = _hooked_scene()
    progress = _drain(scene, _hooked()).run(3600)["a"]

    assert scene.requests[-1].uid == pod.uid
    assert START + LIMIT <= scene.requests[-1].at < START + LIMIT + timedelta(seconds=20)
    (step,) = progress.escalations
    held = "its hook pre-drain.leader (team web) held its eviction until 2026-03-02T12:10:00Z"
    assert step.endswith(f"goes: {held}")


def test_a_drain_by_hand_ignores_hooks() -> None:
    scene, _ = _hooked_scene()

    assert _drain(scene, DrainOptions()).run(60)["a"].phase is Phase.DRAINED
