"""Places for requests in flight: what hangs leaves places to every other node and namespace."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from reconciler.drain.drainer import Limits
from reconciler.drain.drainer.messages import Evict
from reconciler.drain.drainer.shared import Places
from reconciler.model.drains import Phase
from reconciler.model.errors import ReconcilerError, Unreachable
from reconciler.model.pod import Owner, Pod
from tests.drain.drainer.driving import START, Drive, Scene

LIMITS = Limits()
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
    scene = Scene()
    scene.add_node("a", cordoned=True)
    scene.deployment("web", "a", 40)
    drive = Drive(scene)
    drive.hang(EVIL, 1)
    drive.start("a")
    ended = drive.run()["a"]

    assert ended.phase is Phase.DRAINED
    assert ended.finished is not None
    assert ended.finished - START <= timedelta(seconds=8)
