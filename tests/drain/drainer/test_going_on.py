"""The core, event by event: orders that come again, late answers, clocks that go back, pauses and limits."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.drain.drainer import DrainCore, Limits
from reconciler.drain.drainer.messages import (
    AttachmentsSeen,
    BudgetNews,
    CheckNode,
    Command,
    CordonChecks,
    Delete,
    Evict,
    ListAttachments,
    ListPods,
    NodeSeen,
    PodNews,
    PodsSeen,
    Start,
    Tick,
    Unwatch,
    WatchEnded,
    WatchPods,
    WriteDone,
)
from reconciler.model.drains import DrainOrder, Phase
from reconciler.model.errors import Forbidden, ReconcilerError, TooManyRequests, Unreachable
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import Listed, PodGone
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from tests.support import builders
from tests.support.builders import NOW

NODE = builders.node(unschedulable=True)
ORDER = DrainOrder(NODE.name, NODE.uid, NOW, timedelta(hours=3))
SECOND = timedelta(seconds=1)
EARLIER = NOW - timedelta(hours=1)
WEB = builders.pod()


def _started(core: DrainCore, order: DrainOrder = ORDER) -> int:
    (watching,) = core.step(Start(order), NOW)[:1]
    assert isinstance(watching, WatchPods)
    return watching.watch


def _evicting(core: DrainCore, *pods: Pod, order: DrainOrder = ORDER) -> tuple[int, tuple[Command, ...]]:
    """Start the drain of a cordoned node with these pods; its number, and what it then asks for."""
    number = _started(core, order)
    core.step_all(
        [*(PodNews(NODE.name, number, pod) for pod in pods), PodNews(NODE.name, number, Listed())], NOW
    )
    return number, core.step(NodeSeen(NODE.name, number, NODE), NOW)


def _of(commands: tuple[Command, ...], kind: type[Command]) -> list[Command]:
    return [one for one in commands if isinstance(one, kind)]


def _look(drain: int, now: datetime) -> CheckNode:
    return CheckNode(NODE.name, drain, now - CordonChecks().ahead / 2)


def test_a_second_order_for_the_same_node_continues_the_attempt_with_its_settings() -> None:
    core = DrainCore()
    number = _started(core)

    again = core.step(Start(replace(ORDER, timeout=timedelta(minutes=1))), NOW + SECOND)

    assert not _of(again, WatchPods)
    core.step(NodeSeen(NODE.name, number, NODE), NOW + SECOND)
    core.step(Tick(), NOW + timedelta(minutes=1))
    assert core.progress()[NODE.name].phase is Phase.TIMED_OUT


def test_a_drain_that_is_ordered_again_after_its_end_is_one_drain() -> None:
    """A pass orders the drain that it saw run, even if that drain has ended while the pass ran."""
    core = DrainCore()
    number, (evict,) = _evicting(core, WEB)
    assert isinstance(evict, Evict)
    core.step_all([WriteDone(evict), PodNews(NODE.name, number, PodGone(WEB.uid))], NOW)
    _end(core, number)
    first = core.progress()[NODE.name]
    assert (first.phase, first.gone, first.evicted) == (Phase.DRAINED, 1, 1)

    _run_empty(core, ORDER, NOW + SECOND)

    assert core.progress()[NODE.name] == first


def test_a_drain_that_is_ordered_again_for_another_pod_ends_with_that_pod() -> None:
    core = DrainCore()
    number, _ = _evicting(core, WEB)
    core.step(PodNews(NODE.name, number, PodGone(WEB.uid)), NOW)
    _end(core, number)

    _run_empty(core, ORDER, NOW + SECOND, replace(WEB, uid="uid-late", name="late"))

    one = core.progress()[NODE.name]
    assert (one.phase, one.gone, one.finished) == (Phase.DRAINED, 2, NOW + SECOND)


def test_another_attempt_counts_its_own_pods() -> None:
    core = DrainCore()
    number, _ = _evicting(core, WEB)
    core.step(PodNews(NODE.name, number, PodGone(WEB.uid)), NOW)
    _end(core, number)

    _run_empty(core, replace(ORDER, since=NOW + SECOND), NOW + SECOND)

    one = core.progress()[NODE.name]
    assert (one.phase, one.gone, one.finished) == (Phase.DRAINED, 0, NOW + SECOND)


def _run_empty(core: DrainCore, order: DrainOrder, now: datetime, *pods: Pod) -> None:
    """Run a drain to its end; these pods are there at its start, and go."""
    (watching,) = core.step(Start(order), now)[:1]
    assert isinstance(watching, WatchPods)
    number = watching.watch
    there = [PodNews(NODE.name, number, pod) for pod in pods]
    core.step_all([*there, PodNews(NODE.name, number, Listed())], now)
    core.step(NodeSeen(NODE.name, number, NODE), now)
    core.step_all([PodNews(NODE.name, number, PodGone(pod.uid)) for pod in pods], now)
    core.step(PodsSeen(NODE.name, number, ()), now)
    core.step(AttachmentsSeen(NODE.name, number, ()), now)


def test_an_order_for_another_node_of_the_name_starts_another_attempt() -> None:
    core = DrainCore()
    number = _started(core)

    again = core.step(Start(replace(ORDER, uid="uid-of-another")), NOW + SECOND)

    assert _of(again, Unwatch) == [Unwatch(number)]
    assert len(_of(again, WatchPods)) == 1
    # An answer about the first node is not one about the second.
    core.step(NodeSeen(NODE.name, number), NOW + SECOND)
    assert core.progress()[NODE.name].phase is Phase.RUNNING


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(TooManyRequests("busy", status=429, retry_after=10), id="the server asked for a pause"),
        pytest.param(Unreachable("reset"), id="a pod is tried again later"),
    ],
)
def test_a_clock_that_goes_back_ends_the_pauses(error: ReconcilerError) -> None:
    core = DrainCore()
    number, (first,) = _evicting(core, WEB)
    assert isinstance(first, Evict)
    core.step(WriteDone(first, error), NOW)

    core.step(Tick(), EARLIER)

    again = _of(core.step(NodeSeen(NODE.name, number, NODE), EARLIER), Evict)
    assert [write.pod for write in again if isinstance(write, Evict)] == [first.pod]


def test_a_clock_that_goes_back_makes_what_was_seen_old() -> None:
    """The cordon was seen at a time that is in the future now, so it would count as fresh for an hour."""
    core = DrainCore()
    number, _ = _evicting(core, WEB)

    assert core.step(Tick(), EARLIER) == (_look(number, EARLIER),)


def test_a_clock_that_goes_back_opens_a_broken_watch_at_once() -> None:
    core = DrainCore()
    number = _started(core)
    core.step(WatchEnded(NODE.name, number), NOW)

    assert len(_of(core.step(Tick(), EARLIER), WatchPods)) == 1


def test_a_clock_that_goes_back_asks_a_closed_budget_again() -> None:
    closed = PodDisruptionBudget("shop", "web", LabelSelector.of({"app": "web"}), allowed=0)
    web = replace(WEB, labels={"app": "web"})
    core = DrainCore()
    number = _started(core)
    core.step(BudgetNews(closed, 0), NOW)
    core.step_all([PodNews(NODE.name, number, web), PodNews(NODE.name, number, Listed())], NOW)
    assert not _of(core.step(NodeSeen(NODE.name, number, NODE), NOW), Evict)

    core.step(Tick(), EARLIER)

    assert len(_of(core.step(NodeSeen(NODE.name, number, NODE), EARLIER), Evict)) == 1


def test_a_clock_that_goes_back_does_not_wake_a_drain_that_has_ended() -> None:
    core = DrainCore()
    number, _ = _evicting(core)
    _end(core, number)
    assert core.progress()[NODE.name].phase is Phase.DRAINED

    core.step(Tick(), EARLIER)

    assert core.next_wake() is None


def test_a_clock_that_goes_back_does_not_prolong_the_wait_for_volumes() -> None:
    core = DrainCore()
    number, _ = _evicting(core)
    core.step(PodsSeen(NODE.name, number, ()), NOW)
    core.step(AttachmentsSeen(NODE.name, number, ("pv-1",)), NOW)
    core.step(Tick(), EARLIER)

    assert _of(core.step(NodeSeen(NODE.name, number, NODE), EARLIER), ListAttachments)


def _end(core: DrainCore, number: int) -> None:
    core.step(PodsSeen(NODE.name, number, ()), NOW)
    core.step(AttachmentsSeen(NODE.name, number, ()), NOW)


@pytest.mark.parametrize(
    ("order", "pods", "phase"),
    [
        (ORDER, (), Phase.DRAINED),
        (ORDER, (WEB,), Phase.RUNNING),
        (replace(ORDER, case=NOW), (), Phase.RUNNING),
    ],
    ids=["by hand", "by hand, and a pod has left", "for a case"],
)
def test_who_may_not_list_attached_volumes_waits_for_those_of_pods_that_left(
    order: DrainOrder, pods: tuple[Pod, ...], phase: Phase
) -> None:
    core = DrainCore()
    number, _ = _evicting(core, *pods, order=order)
    core.step_all([PodNews(NODE.name, number, PodGone(pod.uid)) for pod in pods], NOW)
    core.step(PodsSeen(NODE.name, number, ()), NOW)
    core.step(AttachmentsSeen(NODE.name, number, error=Forbidden("no")), NOW)

    assert core.progress()[NODE.name].phase is phase


def test_a_clock_that_is_set_by_less_than_a_second_changes_nothing() -> None:
    core = DrainCore()
    _evicting(core, WEB)

    assert core.step(Tick(), NOW - SECOND) == ()


def test_while_the_node_can_not_be_read_nothing_is_evicted_and_it_is_asked_again_after_a_pause() -> None:
    core = DrainCore()
    number, (first,) = _evicting(core, WEB)
    assert isinstance(first, Evict)
    idle = core.next_wake()
    assert idle is not None
    assert core.step(Tick(), idle) == (_look(number, idle),)

    unread = core.step_all(
        [
            NodeSeen(NODE.name, number, error=Unreachable("reset")),
            PodNews(NODE.name, number, builders.pod("b")),
        ],
        idle,
    )

    assert unread == ()
    assert "can't be read" in core.progress()[NODE.name].error
    wake = core.next_wake()
    assert wake is not None
    assert wake > idle
    assert core.step(Tick(), wake) == (CheckNode(NODE.name, number),)
    assert len(_of(core.step(NodeSeen(NODE.name, number, NODE), wake), Evict)) == 1
    assert not core.progress()[NODE.name].error


def test_a_node_that_can_not_be_read_is_read_before_it_is_called_empty() -> None:
    core = DrainCore()
    number, _ = _evicting(core, WEB)
    idle = core.next_wake()
    assert idle is not None
    core.step(Tick(), idle)
    gone = PodNews(NODE.name, number, PodGone(WEB.uid))
    core.step_all([NodeSeen(NODE.name, number, error=Unreachable("reset")), gone], idle)
    wake = core.next_wake()
    assert wake is not None

    assert core.step(Tick(), wake) == (_look(number, wake),)


def test_a_pod_that_a_new_watch_does_not_list_has_gone() -> None:
    core = DrainCore()
    number, _ = _evicting(core, WEB)
    core.step(WatchEnded(NODE.name, number), NOW)
    later = NOW + 2 * SECOND
    (again,) = _of(core.step(Tick(), later), WatchPods)
    assert isinstance(again, WatchPods)

    # Not later, when the pods are listed again in any case.
    assert _of(core.step(PodNews(NODE.name, again.watch, Listed()), later), ListPods)


def test_a_node_that_was_empty_is_confirmed_anew_after_another_pod_came_and_went() -> None:
    core = DrainCore()
    number, asked = _evicting(core)
    assert _of(asked, ListPods)
    assert _of(core.step(PodsSeen(NODE.name, number), NOW), ListAttachments)
    core.step(AttachmentsSeen(NODE.name, number, ("disk",)), NOW)

    core.step(PodNews(NODE.name, number, WEB), NOW + SECOND)

    assert _of(core.step(PodNews(NODE.name, number, PodGone(WEB.uid)), NOW + SECOND), ListPods)


def _watch(commands: tuple[Command, ...]) -> int:
    (watch,) = [one.watch for one in commands if isinstance(one, WatchPods)]
    return watch


def _writes(commands: tuple[Command, ...]) -> list[Evict | Delete]:
    return [one for one in commands if isinstance(one, Evict | Delete)]


def _first_writes(core: DrainCore, *pods: Pod) -> tuple[int, list[Evict | Delete]]:
    """Start the drain of a cordoned node with these pods; its number, and its first writes."""
    number, commands = _evicting(core, *pods)
    return number, _writes(commands)


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
    assert NOW < wake <= NOW + Limits().retry.first
    assert _watch(core.step(Tick(), wake)) != watch


def test_a_server_that_asks_for_a_pause_gets_it_from_all_pods() -> None:
    core = DrainCore(Limits(per_node=1))
    pods = [builders.pod(f"web-{number}") for number in range(3)]
    drain, (first,) = _first_writes(core, *pods)
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
    _, first = _first_writes(core, *[builders.pod(f"web-{number}") for number in range(2)])

    assert len(first) == 2
    other = builders.node("b", unschedulable=True)
    watch = _watch(core.step(Start(DrainOrder("b", other.uid, NOW, None)), NOW))
    core.step(PodNews("b", watch, builders.pod("api", "b")), NOW)
    core.step(PodNews("b", watch, Listed()), NOW)

    assert not _writes(core.step(NodeSeen("b", watch, other), NOW))
    assert len(_writes(core.step(WriteDone(first[0]), NOW))) == 1
