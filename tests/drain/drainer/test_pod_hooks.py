"""Pods with a `pre-drain` hook: it holds the eviction of its own pod for a limited time, and nothing else."""

from __future__ import annotations

from datetime import timedelta

from reconciler.model.drains import DrainOptions, Phase, WaitLimit
from reconciler.model.pod import Pod
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST, minutes
from tests.support.worlds import carry_on, look, world_of

HOOK = f"{PREFIX}/pre-drain.leader"
LIMIT = minutes(10)


def _scene() -> tuple[Scene, Pod]:
    scene = Scene()
    scene.add_node("a", cordoned=True)
    (pod,) = scene.deployment("web", "a")
    scene.deployment("other", "a")
    pod = replace(pod, annotations={HOOK: "team web", f"{PREFIX}/pre-uncordon.x": ""})
    scene.change_pod(pod)
    return scene, pod


def _drain(scene: Scene, options: DrainOptions) -> Drive:
    drive = Drive(scene)
    drive.start("a", timeout=timedelta(hours=1), options=options)
    return drive


def _hooked(longest: timedelta = LIMIT) -> DrainOptions:
    return DrainOptions(hook_wait=WaitLimit(START, longest))


def test_a_hook_holds_its_own_pod_and_no_other() -> None:
    scene, pod = _scene()
    progress = _drain(scene, _hooked()).run(60)["a"]

    assert [one.uid == pod.uid for one in scene.requests] == [False]
    (blocker,) = progress.blockers
    assert blocker.because == (
        "its hook pre-drain.leader (team web) holds its eviction, until 2026-03-02T12:10:00Z at most"
    )


def test_the_pod_goes_when_its_owner_removes_the_annotation() -> None:
    scene, pod = _scene()
    drive = _drain(scene, _hooked())
    drive.at(120, lambda: scene.change_pod(replace(pod, annotations={})))
    progress = drive.run(3600)["a"]

    assert progress.phase is Phase.DRAINED
    assert abs(scene.requests[-1].at - START - minutes(2)) < timedelta(seconds=20)
    assert not progress.escalations


def test_the_pod_goes_after_the_time_limit_and_the_report_says_so() -> None:
    scene, pod = _scene()
    progress = _drain(scene, _hooked()).run(3600)["a"]

    assert scene.requests[-1].uid == pod.uid
    assert START + LIMIT <= scene.requests[-1].at < START + LIMIT + timedelta(seconds=20)
    (step,) = progress.escalations
    held = "its hook pre-drain.leader (team web) held its eviction until 2026-03-02T12:10:00Z"
    assert step.endswith(f"goes: {held}")


def test_a_drain_by_hand_ignores_hooks() -> None:
    scene, _ = _scene()

    assert _drain(scene, DrainOptions()).run(60)["a"].phase is Phase.DRAINED


def test_new_attempts_and_new_annotations_do_not_begin_the_wait_again() -> None:
    world = world_of([builders.node("a", annotations={REQUEST: builders.DRAIN_NOW}), builders.node("b")])
    pod = replace(builders.pod("web", "a"), annotations={HOOK: "team web"})
    world.cluster.add_pod(pod)
    policy = builders.settings("drain: {timeout: 4m}")
    for step in range(1, 5):
        look(world, policy)
        carry_on(world)
        assert world.cluster.pods_on("a")
        world.cluster.add_pod(replace(pod, annotations={f"{PREFIX}/pre-drain.leader-{step}": "again"}))
        world.advance(minutes(2))
    assert world.cluster.pods_on("a")
    look(world, policy)
    world.advance(minutes(2))

    assert world.now == NOW + LIMIT
    assert not world.cluster.pods_on("a")


def test_the_latest_start_ends_the_wait() -> None:
    request = '{"kind":"Reboot","notBefore":"2026-11-21T12:18:00Z"}'
    world = world_of([builders.node("a", annotations={REQUEST: request}), builders.node("b")])
    world.cluster.add_pod(replace(builders.pod("web", "a"), annotations={HOOK: ""}))
    policy = builders.settings("")
    look(world, policy)
    carry_on(world)
    assert world.cluster.pods_on("a")
    world.advance(minutes(3))
    look(world, policy)
    carry_on(world)

    assert not world.cluster.pods_on("a")
