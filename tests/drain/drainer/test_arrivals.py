"""Pods that come to a node after its drain has begun: they hold no slot, and in the end they stay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from reconciler.drain.drainer.parts import TRY_AGAIN
from reconciler.model.drains import ARRIVALS, MOST_RETURNS, Comebacks, DrainOptions, Phase, Seen
from reconciler.model.pod import Owner, Pod, PodSpec
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene
from tests.support.builders import PREFIX

EVIL = "evil"
IN_A_PASS = DrainOptions(comebacks=Comebacks(START))
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

Shape = Callable[[Scene, int], Pod]


def _job(scene: Scene, number: int) -> Pod:
    """A pod of a Job, another one for each try."""
    owner = Owner("Job", f"try-{number}", "batch/v1", f"job-{number}")
    name, uid = f"try-{number}", f"{EVIL}-{number}"
    return Pod(EVIL, name, uid, "a", owner=owner, phase="Running", ready=True, created=scene.now)


def _with_long_grace(scene: Scene, number: int) -> Pod:
    return replace(_job(scene, number), spec=PodSpec(grace=1200))


def _that_ends_at_once(scene: Scene, number: int) -> Pod:
    return replace(_job(scene, number), spec=PodSpec(grace=1))


def _that_has_ended(scene: Scene, number: int) -> Pod:
    return replace(_job(scene, number), phase="Failed", ready=False)


def _that_asks_to_wait(scene: Scene, number: int) -> Pod:
    return replace(_job(scene, number), labels={f"{PREFIX}/drain": "wait-completed"})


SHAPES: dict[str, Shape] = {
    "a Job per try": _job,
    "with a long grace period": _with_long_grace,
    "that have ended": _that_has_ended,
    "that ask to wait": _that_asks_to_wait,
}


def _keep_coming(
    scene: Scene, drive: Drive, count: int, *, shape: Shape = _job, every: float = 1.0, first: float = 0.5
) -> None:
    for number in range(count):
        drive.at(first + every * number, lambda number=number: scene.cluster.add_pod(shape(scene, number)))  # type: ignore[misc]  # bound now


def _add(scene: Scene, *pods: Pod) -> None:
    for pod in pods:
        scene.cluster.add_pod(pod)


def _of_tenant(scene: Scene) -> int:
    return sum(one.pod.startswith(f"{EVIL}/") for one in scene.requests)


def _two_nodes(*, pods: int = 1) -> Scene:
    scene = Scene("a", "b")
    for node in "ab":
        scene.deployment(f"on-{node}", node, pods)
    return scene


@pytest.mark.parametrize("options", [IN_A_PASS, DrainOptions()], ids=["pass", "by hand"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_new_pods_hold_no_slot_whatever_they_are_like(shape: Shape, options: DrainOptions) -> None:
    scene = _two_nodes()
    drive = Drive(scene)
    _keep_coming(scene, drive, 600, shape=shape)
    for node in "ab":
        drive.start(node, slots=1, options=options)
    ended = drive.run(120)

    assert ended["b"].phase is Phase.DRAINED
    assert ended["b"].finished is not None
    assert ended["b"].finished - START <= timedelta(seconds=10)
    assert not ended["a"].slot.held


def test_new_pods_keep_no_slot_for_a_drain_that_a_budget_blocks() -> None:
    scene = _blocked()
    drive = Drive(scene)
    _keep_coming(scene, drive, 600, shape=_that_ends_at_once)
    drive.start("a", slots=1, options=IN_A_PASS)
    drive.at(5.2, lambda: drive.start("b", slots=1, options=IN_A_PASS))
    drive.run(7)

    ended = drive.core.progress()
    assert ended["b"].phase is Phase.DRAINED
    assert not ended["a"].slot.held


def test_new_pods_need_no_slot_once_all_others_have_left() -> None:
    scene = _two_nodes()
    (slow,) = (pod for pod in scene.there("b") if pod.namespace == "shop")
    scene.cluster.finalizers.add(slow.uid)
    drive = Drive(scene)
    scene.cluster.attached["a"] = ("a volume that keeps the drain going",)
    _keep_coming(scene, drive, 2, first=3, every=5)
    for node in "ab":
        drive.start(node, slots=1, options=IN_A_PASS)
    drive.run(20)

    assert drive.core.progress()["b"].slot.held
    assert _of_tenant(scene) == 2


def test_a_drain_does_not_wait_for_pods_that_it_tried_again() -> None:
    scene = _blocked()
    drive = Drive(scene).start("a", timeout=timedelta(hours=2), options=IN_A_PASS)

    def shape(scene: Scene, number: int) -> Pod:
        return (_job if number < ARRIVALS else _with_long_grace)(scene, number)

    _keep_coming(scene, drive, ARRIVALS + 3, shape=shape)
    for pod in range(ARRIVALS, ARRIVALS + 3):
        scene.cluster.finalizers.add(f"{EVIL}-{pod}")
    drive.at(200, lambda: scene.change_budget("shop/on-a", max_unavailable=1))
    ended = drive.run(300)["a"]

    assert _of_tenant(scene) == ARRIVALS + 3
    assert ended.phase is Phase.DRAINED


def test_later_groups_do_not_wait_for_new_pods() -> None:
    scene = _two_nodes()
    critical = PodSpec(priority_class="system-cluster-critical")
    scene.cluster.add_pod(
        Pod("kube-system", "dns", "dns", "a", owner=Owner("ReplicaSet", "dns"), spec=critical)
    )
    drive = Drive(scene).start("a", options=IN_A_PASS)
    _keep_coming(scene, drive, ARRIVALS, shape=_with_long_grace, every=0.02, first=0.05)
    drive.run(20)

    assert [one.at for one in scene.requests if one.pod == "kube-system/dns"]


def test_after_a_bound_new_pods_stay_whoever_owns_them_and_the_drain_ends_without_them() -> None:
    scene = _two_nodes()
    drive = Drive(scene).start("a", slots=1, options=IN_A_PASS)
    _keep_coming(scene, drive, 600, every=0.3)
    ended = drive.run(300)["a"]

    assert ended.phase is Phase.DRAINED
    assert _of_tenant(scene) == ARRIVALS
    (coming,) = ended.coming
    assert coming.namespace == EVIL
    assert coming.count > ARRIVALS
    because = f"came after the start of the drain; new pods keep coming from namespace {EVIL}"
    assert {one.because for one in ended.kept} == {because}
    assert ended.kept


def test_a_namespace_with_many_pods_may_send_more_before_they_stay() -> None:
    """Each pod of a rollout that a scheduler puts there before it sees the cordon goes."""
    scene = _two_nodes()
    for number in range(20):
        scene.cluster.add_pod(
            Pod(EVIL, f"web-{number}", f"web-{number}", "a", owner=Owner("ReplicaSet", "web"))
        )
    drive = Drive(scene).start("a", options=IN_A_PASS)
    drive.at(1.5, lambda: _add(scene, *(_job(scene, number) for number in range(20 * MOST_RETURNS))))
    ended = drive.run(300)["a"]

    assert ended.phase is Phase.DRAINED
    assert (ended.kept, ended.coming) == ((), ())


def _blocked() -> Scene:
    """A node on which something else keeps the drain going."""
    scene = _two_nodes()
    scene.add_budget("on-a", max_unavailable=0)
    return scene


def test_the_pauses_between_tries_double_and_the_last_pod_goes_when_no_more_come() -> None:
    scene = _blocked()
    drive = Drive(scene).start("a", timeout=timedelta(hours=2), options=IN_A_PASS)
    _keep_coming(scene, drive, 15)
    drive.run(3600)

    assert not [pod for pod in scene.there("a") if pod.namespace == EVIL]
    late = [one.at for one in scene.requests if one.pod.startswith(EVIL) and one.at > START + 20 * SECOND]
    assert 0 < len(late) <= 5
    assert min(late) - START <= 2 * TRY_AGAIN


def test_while_pods_keep_coming_the_tries_become_rare() -> None:
    scene = _blocked()
    drive = Drive(scene).start("a", timeout=timedelta(hours=2), options=IN_A_PASS)
    _keep_coming(scene, drive, 360, every=10)
    drive.run(3600)

    tried = sorted({one.at for one in scene.requests if one.pod.startswith(EVIL)})
    later = [at for at in tried if at > START + 5 * MINUTE]
    assert 2 <= len({(at - START) // MINUTE for at in later}) <= 4


def test_the_next_process_knows_how_many_have_come() -> None:
    scene = _blocked()
    seen, records = Seen(), set()
    _keep_coming(scene, Drive(scene), 300, every=5)
    for _ in range(20):
        drive = Drive(scene).start("a", timeout=timedelta(days=1), options=IN_A_PASS, seen=seen)
        progress = drive.run((scene.now - START).total_seconds() + 9)["a"]
        seen = progress.seen
        records.add(repr(seen))
        drive.stop("a")
        scene.clock.advance(scene.now + 51 * SECOND)

    assert 0 < _of_tenant(scene) <= ARRIVALS
    assert [one.namespace for one in progress.coming] == [EVIL]
    # Few writes of the record repeat a count that is too high.
    assert len(records) <= 8


def test_the_pods_of_a_daemonset_that_come_later_are_not_counted() -> None:
    scene = _blocked()
    drive = Drive(scene).start("a", options=IN_A_PASS)
    agents = (
        Pod("kube-system", f"agent-{number}", f"agent-{number}", "a", owner=Owner("DaemonSet", "agent"))
        for number in range(50)
    )
    drive.at(5, lambda: _add(scene, *(pod for pod in agents)))

    assert drive.run(60)["a"].coming == ()
