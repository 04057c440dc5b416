"""The drainer's core, event by event: late answers, a server that asks for a pause, and limits."""

from __future__ import annotations

from datetime import timedelta

from reconciler.drain.drainer import DrainCore, Limits
from reconciler.drain.drainer.messages import (
    Command,
    Delete,
    Evict,
    NodeSeen,
    PodNews,
    Start,
    Tick,
    WatchEnded,
    WatchPods,
    WriteDone,
)
from reconciler.model.drains import DrainOrder, Phase
from reconciler.model.errors import TooManyRequests
from reconciler.model.pod import Pod
from reconciler.model.ports import Listed
from tests.support import builders
from tests.support.builders import NOW

NODE = builders.node(unschedulable=True)
ORDER = DrainOrder(NODE.name, NODE.uid, NOW, timedelta(hours=1))
SECOND = timedelta(seconds=1)


def _watch(commands: tuple[Command, ...]) -> int:
    (watch,) = [one.watch for one in commands if isinstance(one, WatchPods)]
    return watch


def _writes(commands: tuple[Command, ...]) -> list[Evict | Delete]:
    return [one for one in commands if isinstance(one, Evict | Delete)]


def _evicting(core: DrainCore, *pods: Pod) -> tuple[int, list[Evict | Delete]]:
    """Start the drain of a cordoned node with these pods; its number, and its first writes."""
    watch = _watch(core.step(Start(ORDER), NOW))
    core.step_all([PodNews(NODE.name, watch, pod) for pod in pods], NOW)
    core.step(PodNews(NODE.name, watch, Listed()), NOW)
    return watch, _writes(core.step(NodeSeen(NODE.name, watch, NODE), NOW))


def test_news_of_an_earlier_watch_are_ignored() -> None:
    core = DrainCore()
    old = _watch(core.step(Start(ORDER), NOW))
    core.step(WatchEnded(NODE.name, old), NOW)
    later = NOW + 2 * SECOND
    new = _watch(core.step(Tick(), later))

    core.step(PodNews(NODE.name, old, builders.pod()), later)
    core.step(PodNews(NODE.name, old, Listed()), later)

    assert new != old
    assert core.progress()[NODE.name].total == 0
    core.step(PodNews(NODE.name, new, builders.pod()), later)
    assert core.progress()[NODE.name].total == 1


def test_an_answer_to_an_earlier_attempt_is_ignored() -> None:
    core = DrainCore()
    first = _watch(core.step(Start(ORDER), NOW))
    core.step(NodeSeen(NODE.name, first), NOW)
    assert core.progress()[NODE.name].phase is Phase.NODE_GONE
    second = _watch(core.step(Start(ORDER), NOW))

    core.step(NodeSeen(NODE.name, first), NOW)

    assert second != first
    assert core.progress()[NODE.name].phase is Phase.RUNNING


def test_a_watch_that_breaks_is_opened_again_after_a_pause() -> None:
    core = DrainCore()
    watch = _watch(core.step(Start(ORDER), NOW))

    at_once = core.step(WatchEnded(NODE.name, watch), NOW)

    assert not [one for one in at_once if isinstance(one, WatchPods)]
    wake = core.next_wake()
    assert wake is not None
    assert NOW < wake <= NOW + Limits().backoff_first
    assert _watch(core.step(Tick(), wake)) != watch


def test_a_server_that_asks_for_a_pause_gets_it_from_all_pods() -> None:
    core = DrainCore(Limits(per_node=1))
    pods = [builders.pod(f"web-{number}") for number in range(3)]
    drain, (first,) = _evicting(core, *pods)
    busy = TooManyRequests("busy", status=429, retry_after=10)

    def writes_after(seconds: int) -> list[Evict | Delete]:
        later = NOW + seconds * SECOND
        woken = _writes(core.step(Tick(), later))
        return woken + _writes(core.step(NodeSeen(NODE.name, drain, NODE), later))

    assert not _writes(core.step(WriteDone(first, busy), NOW))
    assert not writes_after(9)
    assert len(writes_after(10)) == 1


def test_no_more_writes_are_in_flight_than_the_limit_over_all_nodes() -> None:
    core = DrainCore(Limits(parallel=4))
    _, first = _evicting(core, *[builders.pod(f"web-{number}") for number in range(2)])

    assert len(first) == 2
    other = builders.node("b", unschedulable=True)
    watch = _watch(core.step(Start(DrainOrder("b", other.uid, NOW, None)), NOW))
    core.step(PodNews("b", watch, builders.pod("api", "b")), NOW)
    core.step(PodNews("b", watch, Listed()), NOW)

    assert not _writes(core.step(NodeSeen("b", watch, other), NOW))
    assert len(_writes(core.step(WriteDone(first[0]), NOW))) == 1
