"""Law 17: waits are bounded. A message may be lost: after a bounded time, the state is read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.drain.drainer import DrainCore, Limits
from reconciler.drain.drainer.messages import ListPods, NodeSeen, PodNews, PodsSeen, Start, Tick, WatchPods
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.pod import Pod, PodSpec
from reconciler.model.ports import Listed, PodChange, PodGone
from reconciler.model.values import replace
from reconciler.simulation.clock import SimulatedWatch
from tests.drain.drainer.driving import START, Drive, Scene
from tests.support import builders

LIMITS = Limits()
SLACK = timedelta(seconds=3)
"""For the requests themselves, their latency, and the read of the node before them."""

Lags = tuple[timedelta, ...]
_ONCE: Lags = (timedelta(),)


def _scene(*, grace: int = 30, count: int = 1, terminates_in: float = 1.0) -> Scene:
    scene = Scene("a", terminates_in=terminates_in)
    scene.deployment("web", "a", count, grace=grace)
    return scene


def _drained_after(progress: DrainProgress) -> timedelta:
    assert progress.phase is Phase.DRAINED
    assert progress.finished is not None
    return progress.finished - START


def _drain(scene: Scene, *, timeout: timedelta = timedelta(hours=2)) -> DrainProgress:
    drive = Drive(scene).start("a", timeout=timeout)
    return drive.run(3 * 3600)["a"]


@pytest.mark.parametrize("grace", [1, 10, 30, 300])
def test_a_pod_whose_end_is_not_reported_is_read_after_its_grace_period(grace: int) -> None:
    scene = _scene(grace=grace)
    scene.cluster.delivery = lambda item: () if isinstance(item, PodGone) else _ONCE

    took = _drained_after(_drain(scene))

    assert took <= max(timedelta(seconds=grace) + LIMITS.overdue, timedelta(seconds=1)) + SLACK


@pytest.mark.parametrize("grace", [1, 30, 300])
def test_an_eviction_of_which_nothing_is_reported_is_read_after_the_grace_period(grace: int) -> None:
    scene = _scene(grace=grace)
    scene.cluster.delivery = lambda _: ()

    assert _drained_after(_drain(scene)) <= timedelta(seconds=grace) + LIMITS.overdue + SLACK


def test_a_pod_that_ends_long_after_its_grace_period_is_noticed_soon() -> None:
    scene = _scene(grace=10)
    (pod,) = scene.there("a")
    scene.cluster.finalizers.add(pod.uid)
    scene.cluster.delivery = lambda _: ()
    drive = Drive(scene).start("a", timeout=timedelta(hours=2))
    drive.at(200, lambda: scene.cluster.drop_pod(pod.uid))

    assert _drained_after(drive.run(3600)["a"]) <= timedelta(seconds=200) + LIMITS.reread_every + SLACK


def test_a_pod_that_no_event_reports_is_evicted_too() -> None:
    scene = _scene(grace=300, terminates_in=300)
    drive = Drive(scene).start("a", timeout=timedelta(hours=2))
    scene.cluster.delivery = lambda _: ()
    late = Pod("shop", "late", "late", "a", {}, phase="Running", ready=True, spec=PodSpec(grace=5))
    web = next(iter(scene.there("a")))
    drive.at(20, lambda: scene.cluster.add_pod(replace(late, owner=web.owner)))
    drive.run(3600)

    (asked,) = [one for one in scene.requests if one.uid == "late"]
    assert asked.at - START <= timedelta(seconds=20) + LIMITS.reread_every + SLACK


def _silent(scene: Scene, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let these watches be open and say nothing, not even what is there."""
    for name in names:
        monkeypatch.setattr(
            scene.cluster, name, lambda *_: SimulatedWatch((), lambda _: None, scene.clock, lambda _: ())
        )


def test_a_drain_needs_no_watch_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _scene(grace=10)
    _silent(scene, monkeypatch, "watch_pods")

    took = _drained_after(_drain(scene))

    assert took <= LIMITS.reread_every + timedelta(seconds=10) + LIMITS.overdue + SLACK
    assert len(scene.requests) == 1


def test_a_drain_needs_no_watch_of_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _scene(count=LIMITS.budgets_from + 1)
    scene.add_budget("web", max_unavailable=LIMITS.budgets_from + 1)
    _silent(scene, monkeypatch, "watch_budgets")

    assert _drained_after(_drain(scene)) <= LIMITS.reread_every + timedelta(seconds=30) + SLACK


def test_a_budget_whose_news_are_lost_is_asked_again() -> None:
    scene = _scene(count=LIMITS.budgets_from + 1)
    scene.add_budget("web", max_unavailable=0)
    drive = Drive(scene).start("a", timeout=timedelta(hours=2))
    scene.cluster.delivery = lambda item: _ONCE if isinstance(item, Pod | PodGone) else ()
    drive.at(60, lambda: scene.change_budget("shop/web", max_unavailable=LIMITS.budgets_from + 1))

    took = _drained_after(drive.run(3600)["a"])

    assert took <= timedelta(seconds=60) + (LIMITS.budgets_from + 1) * (LIMITS.retry.last + SLACK)


def test_an_unready_pod_is_not_asked_for_without_a_pause_where_the_budget_is_worse_than_reported() -> None:
    """The last news said that enough pods are healthy: then an unready one needs no place of the budget."""
    scene = _scene()
    scene.cluster.budget_lag = timedelta()
    (web,) = scene.there("a")
    scene.add_budget("web", max_unavailable=0)
    drive = Drive(scene).start("a", timeout=timedelta(minutes=10))
    scene.cluster.delivery = lambda item: _ONCE if isinstance(item, Pod | PodGone) else ()
    drive.at(40, lambda: scene.change_pod(replace(scene.cluster.pods[web.uid], ready=False)))
    drive.run(300)

    asked = sum(one.uid == web.uid for one in scene.requests)
    assert asked <= 300 / LIMITS.retry.last.total_seconds() + 10


def _unreliable(seed: int, tried: Counter[str]) -> Callable[[object], Lags]:
    """Lose, double and delay events; delayed ones overtake each other."""
    random = Random(seed)

    def delivery(_: object) -> Lags:
        kind = random.choice(["kept", "lost", "doubled", "late"])
        tried[kind] += 1
        late = timedelta(seconds=random.choice([1, 10, 60]))
        return {"kept": _ONCE, "lost": (), "doubled": (timedelta(), late), "late": (late,)}[kind]

    return delivery


@given(
    seed=st.integers(0, 10**6),
    graces=st.lists(st.sampled_from([1, 5, 30, 120]), min_size=1, max_size=4),
    silent_from=st.none() | st.integers(0, 60),
)
def test_events_lost_doubled_late_and_reordered_delay_a_drain_by_a_bounded_time(
    seed: int, graces: list[int], silent_from: int | None
) -> None:
    scene, tried = Scene(), Counter[str]()
    scene.add_node("a", cordoned=True)
    for number, grace in enumerate(graces):
        scene.deployment(f"app-{number}", "a", grace=grace)
    unreliable = _unreliable(seed, tried)
    end = None if silent_from is None else START + timedelta(seconds=silent_from)
    scene.cluster.delivery = lambda item: () if end and scene.now >= end else unreliable(item)

    progress = _drain(scene)

    assert _drained_after(progress) <= timedelta(seconds=max(graces)) + LIMITS.reread_every + 2 * SLACK
    assert not scene.there("a")
    assert Counter(one.uid for one in scene.requests).most_common(1)[0][1] == 1
    assert sum(tried.values()) or silent_from is not None


NODE = builders.node(unschedulable=True)
ORDER = DrainOrder(NODE.name, NODE.uid, START, timedelta(hours=1))


def _started(*news: PodChange) -> tuple[DrainCore, int]:
    """Start a drain of a cordoned node whose watch reports this: the core, and the drain's number."""
    core = DrainCore()
    (number,) = [one.watch for one in core.step(Start(ORDER), START) if isinstance(one, WatchPods)]
    core.step_all([*(PodNews(NODE.name, number, one) for one in news), _cordoned(number)], START)
    return core, number


def _rereading(*news: PodChange) -> tuple[DrainCore, int, timedelta]:
    """Start a drain, and wait until it lists its pods: the core, its number, and how long after the start."""
    core, number = _started(*news, Listed())
    after = LIMITS.reread_every
    assert ListPods(NODE.name, number) in core.step(Tick(), START + after)
    return core, number, after


def test_a_drain_whose_watch_lists_again_lists_no_pods_itself() -> None:
    pod = builders.pod()
    core, number = _started(pod, Listed())
    later = START + LIMITS.reread_every - timedelta(seconds=1)
    core.step_all([PodNews(NODE.name, number, pod), PodNews(NODE.name, number, Listed())], later)

    assert ListPods(NODE.name, number) not in core.step(Tick(), START + LIMITS.reread_every)
    assert ListPods(NODE.name, number) in core.step(Tick(), later + LIMITS.reread_every)


def _cordoned(drain: int) -> NodeSeen:
    return NodeSeen(NODE.name, drain, NODE)


def test_a_pod_that_went_while_the_list_was_on_its_way_is_not_brought_back() -> None:
    pod, other = builders.pod(), builders.pod("other")
    core, drain, after = _rereading(pod, other)

    core.step(PodNews(NODE.name, drain, PodGone(pod.uid)), START + after)
    core.step(PodsSeen(NODE.name, drain, (pod, other)), START + after)

    assert core.progress()[NODE.name].gone == 1


def test_a_pod_that_is_newer_than_the_list_is_not_forgotten() -> None:
    pod, newer = builders.pod(), builders.pod("newer")
    core, drain, after = _rereading(pod)

    core.step(PodNews(NODE.name, drain, newer), START + after)
    core.step(PodsSeen(NODE.name, drain, (pod,)), START + after)

    progress = core.progress()[NODE.name]
    assert (progress.total, progress.gone) == (2, 0)


def test_a_list_with_a_pod_that_is_gone_does_not_end_a_drain() -> None:
    pod = builders.pod()
    core, drain, after = _rereading(pod)

    core.step(PodNews(NODE.name, drain, PodGone(pod.uid)), START + after)
    asked = core.step_all([PodsSeen(NODE.name, drain, (pod,)), _cordoned(drain)], START + after)

    assert ListPods(NODE.name, drain) in asked


def test_a_pod_whose_end_was_reported_wrongly_is_found_again() -> None:
    pod, other = builders.pod(), builders.pod("other")
    core, drain = _started(pod, other, Listed(), PodGone(pod.uid))
    after = START + LIMITS.reread_every
    core.step(Tick(), after)

    core.step(PodsSeen(NODE.name, drain, (pod, other)), after)

    assert core.progress()[NODE.name].gone == 0


def test_a_late_event_brings_no_pod_back() -> None:
    pod, other = builders.pod(), builders.pod("other")

    core, _ = _started(pod, other, Listed(), PodGone(pod.uid), pod)

    assert core.progress()[NODE.name].gone == 1


def test_an_old_event_does_not_hide_a_deletion() -> None:
    leaving = builders.pod(deleting_until=START + timedelta(seconds=10))
    core, drain, after = _rereading(leaving)

    core.step(PodNews(NODE.name, drain, replace(leaving, deleting_until=None)), START + after)

    (blocker,) = core.progress()[NODE.name].blockers
    assert "terminating" in blocker.because
