"""Law 17 for slots: whatever blocks some drains, each that could go on begins within a bounded time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.drain.drainer import Limits
from reconciler.model.drains import Phase
from reconciler.simulation.clock import Actor
from tests.drain.drainer.driving import START, Drive, Scene
from tests.laws.hits import Hits
from tests.support.searching import examples

LIMITS = Limits()
SLACK = timedelta(seconds=5)
TERMINATES_IN = timedelta(seconds=4)
OPENED_AT = timedelta(seconds=90)

BLOCKED = ("budget", "budget until later", "finalizer")

WAITED = Hits()


@WAITED.at_least(15)
@settings(max_examples=examples(40))
@given(
    kinds=st.lists(st.sampled_from(("free", "free", *BLOCKED)), min_size=1, max_size=6),
    slots=st.integers(1, 3),
    pods=st.sampled_from((1, LIMITS.budgets_from)),
)
def test_every_drain_that_could_go_on_begins_within_a_bounded_time(
    kinds: list[str], slots: int, pods: int
) -> None:
    scene = Scene(terminates_in=TERMINATES_IN.total_seconds())
    drive = Drive(scene)
    for number, kind in enumerate(kinds):
        _add(scene, drive, f"n{number}", kind, pods)
        drive.start(f"n{number}", slots=slots, timeout=timedelta(hours=2))
    ended = drive.run(300)

    free = [f"n{number}" for number, kind in enumerate(kinds) if kind == "free"]
    # A pod with a finalizer counts as on its way until it is late.
    late = timedelta(seconds=30) + LIMITS.overdue
    waves = len(free) // slots + 1
    stuck = (kinds.count("finalizer") // slots + 1) * late
    bound = START + waves * (pods * TERMINATES_IN + LIMITS.slot_kept) + stuck + SLACK
    for node in free:
        assert ended[node].phase is Phase.DRAINED
        assert _first(scene, node) <= bound
    for number, kind in enumerate(kinds):
        if kind == "budget until later":
            assert ended[f"n{number}"].phase is Phase.DRAINED
    assert max(_at_once(scene), default=0) <= slots
    WAITED.count(len(kinds) > slots)


def _add(scene: Scene, drive: Drive, node: str, kind: str, pods: int) -> None:
    scene.add_node(node, cordoned=True)
    made = scene.deployment(node, node, pods)
    if kind == "finalizer":
        scene.cluster.finalizers.update(pod.uid for pod in made)
    elif kind != "free":
        scene.add_budget(node, max_unavailable=0)
    if kind == "budget until later":
        opened = OPENED_AT.total_seconds()
        drive.at(opened, lambda: scene.change_budget(f"shop/{node}", max_unavailable=pods))


def _first(scene: Scene, node: str) -> datetime:
    return min(one.at for one in scene.requests if one.uid.startswith(f"shop/{node}-"))


def _at_once(scene: Scene) -> Iterator[int]:
    """Yield on how many nodes pods are on their way, at each eviction that was granted.

    A pod that is late is not on its way: nobody knows whether it ever leaves.
    """
    granted = tuple(scene.cluster.log.of(Actor.US, "evict"))
    for one in granted:
        yield len(
            {
                other.subject.rpartition("-")[0]
                for other in granted
                if other.at <= one.at < other.at + TERMINATES_IN
            }
        )
