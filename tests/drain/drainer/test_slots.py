"""Slots and places: which drains may evict, and what leaves room to every other node and namespace."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from reconciler.drain.drainer import Limits
from reconciler.drain.drainer.messages import Evict
from reconciler.drain.drainer.node_drain import NodeDrain
from reconciler.drain.drainer.shared import Places
from reconciler.drain.drainer.turns import Slots
from reconciler.model.drains import DrainOrder, Escalation, Phase
from reconciler.model.errors import ReconcilerError, Unreachable
from reconciler.model.moments import to_text
from reconciler.model.pod import Owner, Pod, PodSpec
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene, order_for

LIMITS = Limits()


def _scene(*nodes: str, pods: int = 1, terminates_in: float = 1.0) -> Scene:
    scene = Scene(terminates_in=terminates_in)
    for node in nodes:
        scene.add_node(node, cordoned=True)
        scene.deployment(f"on-{node}", node, pods)
    return scene


def _block(scene: Scene, *nodes: str) -> None:
    for node in nodes:
        scene.add_budget(f"on-{node}", max_unavailable=0)


def _asked(drive: Drive, node: str) -> datetime:
    return next(at for at, one in drive.commands if isinstance(one, Evict) and one.node == node)


def _first_eviction(scene: Scene, node: str) -> timedelta:
    return next(one.at for one in scene.requests if one.uid.startswith(f"shop/on-{node}-")) - START


def test_only_so_many_drains_evict_at_once() -> None:
    scene = _scene("a", "b", terminates_in=10)
    drive = Drive(scene)
    for node in "ab":
        drive.start(node, slots=1)
    drive.at(5, lambda: None)
    early = drive.run(5)

    assert (early["a"].slot.held, early["a"].slot.awaited) == (True, False)
    assert (early["b"].slot.held, early["b"].slot.awaited) == (False, True)
    assert drive.run()["b"].phase is Phase.DRAINED
    assert _first_eviction(scene, "b") >= timedelta(seconds=10)


def test_a_drain_that_a_budget_blocks_gives_its_slot_away() -> None:
    scene = _scene("a", "b")
    _block(scene, "a")
    drive = Drive(scene)
    for node in "ab":
        drive.start(node, slots=1)
    ended = drive.run(60)

    assert ended["b"].phase is Phase.DRAINED
    assert _first_eviction(scene, "b") <= timedelta(seconds=1)
    assert not ended["a"].slot.held
    assert ended["a"].slot.blocked_since is not None
    assert ended["a"].slot.blocked_since - START <= timedelta(seconds=1)


def test_a_drain_without_a_slot_goes_on_when_its_budget_allows_it() -> None:
    scene = _scene("a", pods=LIMITS.budgets_from)
    _block(scene, "a")
    drive = Drive(scene).start("a", slots=1)
    drive.at(100, lambda: scene.change_budget("shop/on-a", max_unavailable=LIMITS.budgets_from))

    progress = drive.run()["a"]

    assert progress.phase is Phase.DRAINED
    assert progress.finished is not None
    assert progress.finished - START <= timedelta(seconds=110)


def test_the_drain_that_has_waited_for_a_slot_for_longest_gets_it() -> None:
    scene = _scene("a", "b", "c", pods=LIMITS.budgets_from, terminates_in=20)
    _block(scene, "a")
    drive = Drive(scene)
    for node in "abc":
        drive.start(node, slots=1)
    drive.at(5, lambda: scene.change_budget("shop/on-a", max_unavailable=LIMITS.budgets_from))
    drive.run()

    assert _first_eviction(scene, "b") < _first_eviction(scene, "c") < _first_eviction(scene, "a")


def test_a_slot_that_becomes_free_is_that_of_the_first_in_line() -> None:
    slots, first, second = Slots(), *(NodeDrain(_with_slots(node, 1), 1, LIMITS) for node in "ab")
    for drain in (first, second):
        drain.slot.awaited = True
        slots.note(drain)

    assert (slots.is_free(first), slots.is_free(second)) == (True, False)
    assert slots.next_in_line() == ["a"]


def _with_slots(node: str, slots: int) -> DrainOrder:
    return replace(order_for(node), slots=slots)


def test_a_drain_without_a_limit_needs_no_slot_and_takes_none() -> None:
    scene = _scene("a", "b", "c", terminates_in=20)
    drive = Drive(scene).start("a")
    drive.start("b", slots=1)
    drive.start("c")
    drive.run()

    assert max(_first_eviction(scene, node) for node in "abc") <= timedelta(seconds=1)


def test_a_drain_keeps_its_slot_between_the_pods_of_a_budget() -> None:
    scene = _scene("a", "b", pods=4)
    scene.add_budget("on-a", max_unavailable=1)
    drive = Drive(scene)
    for node in "ab":
        drive.start(node, slots=1)
    ended = drive.run()

    assert ended["a"].finished is not None
    assert START + _first_eviction(scene, "b") >= ended["a"].finished - timedelta(seconds=2)


def test_a_pod_that_never_leaves_does_not_keep_the_slot() -> None:
    scene = _scene("a", "b")
    (stuck,) = scene.there("a")
    scene.cluster.finalizers.add(stuck.uid)
    drive = Drive(scene)
    for node in "ab":
        drive.start(node, slots=1)
    drive.run(120)

    assert _first_eviction(scene, "b") <= timedelta(seconds=stuck.spec.grace) + LIMITS.overdue + timedelta(
        seconds=1
    )


def test_a_node_that_cannot_be_read_keeps_no_slot() -> None:
    scene = _scene("a", "b")
    drive = Drive(scene).start("a", slots=1)
    scene.cluster.delete_node("a")
    drive.start("b", slots=1)

    assert drive.run()["b"].phase is Phase.DRAINED


def test_a_drain_that_is_stopped_gives_its_slot_to_the_next() -> None:
    scene = _scene("a", "b", terminates_in=25)
    drive = Drive(scene)
    for node in "ab":
        drive.start(node, slots=1)
    drive.at(3, lambda: drive.stop("a"))
    drive.run()

    assert timedelta(seconds=3) <= _first_eviction(scene, "b") <= timedelta(seconds=4)


@pytest.mark.parametrize("deadline", [None, START + timedelta(minutes=20)], ids=["timeout", "deadline"])
def test_a_pod_that_outlasts_the_drain_keeps_no_slot_and_is_named(deadline: datetime | None) -> None:
    scene = _scene("a", "b", terminates_in=10**9)
    (stuck,) = scene.there("a")
    scene.change_pod(replace(stuck, spec=PodSpec(grace=100_000_000)))
    drive = Drive(scene)
    for node in "ab":
        drive.start(node, slots=1, timeout=timedelta(minutes=30), escalation=Escalation(deadline=deadline))
    ended = drive.run(120)

    assert _first_eviction(scene, "b") <= LIMITS.slot_kept + timedelta(seconds=1)
    until = to_text(deadline or START + timedelta(minutes=30))
    (blocker,) = ended["a"].blockers
    assert blocker.because == f"its grace period is a year or more; waits at most until {until}"
    assert not ended["a"].slot.held


def test_a_pod_that_leaves_in_time_keeps_the_slot() -> None:
    scene = _scene("a", "b", terminates_in=10**9)
    for pod in scene.there("a"):
        scene.change_pod(replace(pod, spec=PodSpec(grace=600)))
    drive = Drive(scene)
    for node in "ab":
        drive.start(node, slots=1, escalation=Escalation(deadline=START + timedelta(minutes=20)))
    drive.run()

    assert _first_eviction(scene, "b") >= timedelta(seconds=600)


def test_an_attempt_after_the_deadline_keeps_its_slot_while_pods_leave() -> None:
    scene = _scene("a", "b", terminates_in=20)
    drive = Drive(scene)
    for node in "ab":
        drive.start(node, slots=1, escalation=Escalation(deadline=START - timedelta(minutes=1)))
    drive.run()

    assert _first_eviction(scene, "b") >= timedelta(seconds=20)


def test_an_eviction_that_hangs_keeps_no_slot() -> None:
    scene = _scene("a", "b")
    drive = Drive(scene)
    drive.hang("shop", 20)
    for node in "ab":
        drive.start(node, slots=1)
    drive.run(60)

    assert _asked(drive, "b") - _asked(drive, "a") <= LIMITS.slot_kept + timedelta(seconds=1)


def test_a_deadline_waits_for_no_slot() -> None:
    scene = _scene("a", "b", terminates_in=25)
    drive = Drive(scene).start("a", slots=1)
    deadline = START + timedelta(seconds=40)
    drive.start("b", slots=1, escalation=Escalation(delete_before_deadline=True, deadline=deadline))
    drive.run()

    assert timedelta(seconds=10) <= _first_eviction(scene, "b") <= timedelta(seconds=11)


EVIL = "shop"
"""The namespace of all pods that a scene makes, here the one whose webhook hangs."""

OWNER = Owner("ReplicaSet", "web", "apps/v1")


def _fill(places: Places, node: str, namespace: str) -> int:
    count = 0
    while places.has_room(node, namespace):
        places.take(node, namespace)
        count += 1
    return count


def test_a_namespace_takes_half_of_the_places_of_a_node_and_the_next_half_of_the_rest() -> None:
    places = Places(LIMITS)

    assert [_fill(places, "a", namespace) for namespace in ("x", "y", "z")] == [10, 5, 3]


def test_a_namespace_takes_half_of_all_places_over_all_nodes() -> None:
    places = Places(LIMITS)
    taken = Counter({node: _fill(places, node, "x") for node in "abcdef"})

    assert sum(taken.values()) == LIMITS.parallel // 2
    assert _fill(places, "g", "y") == LIMITS.per_node // 2


def test_a_node_takes_half_of_all_places() -> None:
    places = Places(Limits(parallel=20, per_node=20))

    assert sum(_fill(places, "a", f"x{number}") for number in range(20)) == 10
    assert _fill(places, "b", "y") == 5


def test_the_places_of_a_node_and_of_all_nodes_are_never_exceeded() -> None:
    places = Places(LIMITS)
    taken = Counter({node: sum(_fill(places, node, f"x{number}") for number in range(30)) for node in "abcd"})

    assert max(taken.values()) <= LIMITS.per_node
    assert sum(taken.values()) <= LIMITS.parallel


def test_a_place_that_is_given_back_is_free() -> None:
    places = Places(LIMITS)
    _fill(places, "a", "x")
    for _ in range(LIMITS.per_node):
        places.release("a", "x")

    assert _fill(places, "a", "x") == LIMITS.per_node // 2


def _times_out(scene: Scene) -> None:
    """Let the API server give up on each eviction in the namespace, once its webhook has hung for long."""

    def refuse(verb: str, pod: Pod | None) -> ReconcilerError | None:
        evil = verb == "evict" and pod is not None and pod.namespace == EVIL
        return Unreachable('failed calling webhook "evil": context deadline exceeded') if evil else None

    scene.trouble = refuse


@pytest.mark.parametrize("together", [False, True], ids=["another node", "the same node"])
def test_evictions_that_hang_leave_others_as_fast_as_alone(together: bool) -> None:
    scene = Scene()
    for node in "abcd":
        scene.add_node(node, cordoned=True)
    for node in "abc":
        scene.deployment(f"evil-{node}", node, 40)
    plain = [
        Pod("rich", f"web-{number}", f"rich-{number}", "a" if together else "d", owner=OWNER, phase="Running")
        for number in range(40)
    ]
    for pod in plain:
        scene.cluster.add_pod(pod)
    _times_out(scene)
    drive = Drive(scene)
    drive.hang(EVIL, 10)
    for node in "abcd":
        drive.start(node)
    drive.run(9)

    sent = [at for at, one in drive.commands if isinstance(one, Evict) and one.pod.namespace == "rich"]
    assert len(sent) == 40
    assert max(sent) - START <= timedelta(seconds=1)
    if not together:
        assert drive.core.progress()["d"].evicted == 40


def test_evictions_that_wait_for_a_place_go_on_when_the_others_are_answered() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 40)
    drive = Drive(scene)
    drive.hang(EVIL, 1)
    drive.start("a")
    ended = drive.run()["a"]

    assert ended.phase is Phase.DRAINED
    assert ended.finished is not None
    assert ended.finished - START <= timedelta(seconds=8)
