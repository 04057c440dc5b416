"""Laws that hold for random clusters, budgets, failures and uncordons."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.drain.drainer import Limits
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.errors import Conflict, NotFound, ReconcilerError, TooManyRequests, Unreachable
from reconciler.model.pod import Pod
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene
from tests.laws.hits import Hits
from tests.support.searching import examples

_TROUBLES: tuple[Callable[[], ReconcilerError], ...] = (
    lambda: Unreachable("reset"),
    lambda: TooManyRequests("busy", status=429, retry_after=2),
    lambda: Conflict("transient", status=409),
    lambda: NotFound("not yet in this cache", status=404),
)


@dataclass(frozen=True, slots=True)
class Story:
    """One random run."""

    apps: tuple[tuple[int, int | None, int], ...]
    sets: int
    uncordon_at: int | None
    trouble: float
    seed: int
    latency: float


_STORIES = st.builds(
    Story,
    apps=st.lists(
        st.tuples(st.integers(1, 6), st.one_of(st.none(), st.integers(0, 3)), st.integers(1, 3)),
        min_size=1,
        max_size=5,
    ).map(tuple),
    sets=st.integers(0, 3),
    uncordon_at=st.one_of(st.none(), st.integers(0, 60)),
    trouble=st.sampled_from([0.0, 0.1, 0.4]),
    seed=st.integers(0, 2**32),
    latency=st.sampled_from([0.02, 0.4, 2.0]),
)


def _play(story: Story, *, newcomers: int = 0) -> tuple[Scene, Drive, DrainProgress]:
    """Play a story; so many pods `new` come to node a when it is uncordoned."""
    scene = Scene(ready_after=3)
    for node in ("a", "b"):
        scene.add_node(node, cordoned=True)
    for index, (count, allowed, nodes) in enumerate(story.apps):
        here = scene.deployment(f"app{index}", "a", count)
        if nodes > 1:
            twins = (replace(pod, name=f"{pod.name}-b", uid=f"{pod.uid}-b", node="b") for pod in here)
            scene.deploy(f"app{index}", *twins)
        if allowed is not None:
            scene.add_budget(f"app{index}", max_unavailable=allowed)
    if story.sets:
        scene.stateful_set("db", "a", story.sets)
    chance = random.Random(story.seed)

    def trouble(verb: str, _: Pod | None) -> ReconcilerError | None:
        return chance.choice(_TROUBLES)() if chance.random() < story.trouble else None

    scene.trouble = trouble
    drive = Drive(scene, latency=story.latency).start("a", timeout=timedelta(minutes=10))
    drive.start("b", timeout=timedelta(minutes=10))
    if story.uncordon_at is not None:

        def uncordon() -> None:
            scene.cluster.cordon("a", on=False)
            if newcomers:
                scene.deployment("new", "a", newcomers)

        drive.at(story.uncordon_at, uncordon)
    return scene, drive, drive.run()["a"]


REQUESTS = Hits()


@REQUESTS.at_least(60)
@settings(max_examples=examples(60), deadline=None)
@given(_STORIES)
def test_law_1_nothing_is_evicted_from_a_node_that_was_not_seen_cordoned_just_before(story: Story) -> None:
    scene, _, _ = _play(story, newcomers=5)
    # An uncordon between our read and our eviction is noticed by the next read.
    slack = Limits().cordon.within + timedelta(seconds=2 * story.latency)
    for one in scene.requests:
        REQUESTS.count()
        assert one.cordoned or one.at <= START + timedelta(seconds=story.uncordon_at or 0) + slack
        # The node is read before the first eviction of a pod that was not there at the start.
        assert story.uncordon_at == 0 or not one.uid.startswith("shop/new-")


@settings(max_examples=examples(60), deadline=None)
@given(_STORIES)
def test_no_budget_is_overdrawn_and_no_pod_of_another_uid_is_touched(story: Story) -> None:
    scene, _, _ = _play(story)

    assert not scene.overdrawn
    assert {one.node for one in scene.requests} <= {"a", "b"}
    assert not any(one.granted and one.verb != "evict" for one in scene.requests)


@settings(max_examples=examples(60), deadline=None)
@given(_STORIES)
def test_a_drained_node_is_empty_and_otherwise_the_remaining_pods_are_named(story: Story) -> None:
    scene, _, progress = _play(story)
    left = {pod.key for pod in scene.there("a")}

    if progress.phase is Phase.DRAINED:
        assert not left
    elif progress.phase is Phase.TIMED_OUT:
        assert left <= {blocker.pod for blocker in progress.blockers}


@settings(max_examples=examples(25), deadline=None)
@given(_STORIES)
def test_the_same_events_at_the_same_times_give_the_same_commands(story: Story) -> None:
    _, first, _ = _play(story)
    _, second, _ = _play(story)

    assert first.commands == second.commands


@settings(max_examples=examples(40), deadline=None)
@given(_STORIES)
def test_every_drain_that_nothing_hinders_ends(story: Story) -> None:
    scene, _, progress = _play(story)
    free = all(allowed != 0 for _, allowed, _ in story.apps)
    if free and story.uncordon_at is None and story.trouble == 0:
        assert progress.phase is Phase.DRAINED
        # One request a pod, and few besides.
        assert len(scene.requests) + len(scene.reads) <= 1.15 * len(scene.requests) + 40
