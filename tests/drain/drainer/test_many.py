"""Many drains at once: a step costs what it touches, and not a look at all drains."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest

from reconciler.drain.drainer import DrainCore
from reconciler.drain.drainer.messages import (
    AttachmentsSeen,
    BudgetNews,
    CheckNode,
    Command,
    Event,
    Evict,
    ListAttachments,
    ListPods,
    NodeSeen,
    PodNews,
    PodsSeen,
    Start,
    Stop,
    Tick,
    WatchBudgets,
    WatchPods,
    WriteDone,
)
from reconciler.model.drains import Phase
from reconciler.model.node import Node
from reconciler.model.pod import Owner, Pod, PodDisruptionBudget, PodSpec
from reconciler.model.ports import Listed, PodGone
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, order_for


class _Cluster:
    """Answers each command at once: nodes of a few pods of one workload, whose budget allows everything."""

    def __init__(self, pods: int) -> None:
        self._pods = pods
        self._watches: dict[str, int] = {}

    def answer(self, command: Command) -> Iterator[Event]:
        match command:
            case CheckNode(node, drain):
                yield NodeSeen(node, drain, Node(node, f"uid-{node}", "1", unschedulable=True))
            case WatchPods(node, watch):
                self._watches[node] = watch
                for number in range(self._pods):
                    yield PodNews(node, watch, self._pod(node, number))
                yield PodNews(node, watch, Listed())
            case WatchBudgets(watch):
                selector = LabelSelector.of({"app": "web"})
                yield BudgetNews(PodDisruptionBudget("shop", "web", selector, 9999, 9999, 0), watch)
                yield BudgetNews(Listed(), watch)
            case ListPods(node, drain):
                yield PodsSeen(node, drain)
            case ListAttachments(node, drain):
                yield AttachmentsSeen(node, drain)
            case Evict(node=node, pod=pod):
                yield WriteDone(command)
                yield PodNews(node, self._watches[node], PodGone(pod.uid))
            case _:
                pass

    def _pod(self, node: str, number: int) -> Pod:
        name, owner = f"{node}-{number}", Owner("ReplicaSet", "web", "apps/v1")
        return Pod("shop", name, name, node, {"app": "web"}, owner=owner, ready=True, spec=PodSpec(grace=0))


def _lines(nodes: int, pods: int, slots: int | None) -> int:
    """Drain so many nodes, and return how many lines of the drainer that took."""
    core, cluster, now, lines = DrainCore(), _Cluster(pods), START, 0
    orders = [replace(order_for(f"n{number}"), slots=slots) for number in range(nodes)]
    events: deque[Event] = deque(Start(order) for order in orders)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        del argument
        if "/drainer/" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    while core.running() or events:
        if not events:
            now = max(now, core.next_wake() or now)
        sys.settrace(trace)
        try:
            commands = core.step(events.popleft() if events else Tick(), now)
            core.next_wake()
        finally:
            sys.settrace(before)
        now += timedelta(microseconds=10)
        for command in commands:
            events.extend(cluster.answer(command))
    assert {progress.phase for progress in core.progress().values()} == {Phase.DRAINED}
    return lines


@pytest.mark.parametrize(
    ("pods", "slots"),
    [
        pytest.param(1, None, id="one pod each"),
        pytest.param(1, 5, id="few slots"),
        pytest.param(6, None, id="one budget for all pods"),
    ],
)
def test_a_drain_costs_the_same_whatever_the_number_of_drains(pods: int, slots: int | None) -> None:
    few, many = _lines(20, pods, slots) / 20, _lines(120, pods, slots) / 120

    assert many <= 1.5 * few


def test_the_same_order_again_costs_no_turn_and_another_one_does() -> None:
    core, cluster = DrainCore(), _Cluster(1)
    order = order_for("n")
    watch, check = core.step(Start(order), START)
    core.step_all([*cluster.answer(watch), *cluster.answer(check)], START)
    core.touched()

    core.step(Start(order), START)
    assert core.touched() == ()
    core.step(Start(replace(order, timeout=timedelta(minutes=7))), START)
    assert [progress.node for progress in core.touched()] == ["n"]


def test_only_the_drains_that_have_ended_are_shown_at_once() -> None:
    core = DrainCore()
    core.step_all([Start(order_for("a")), Start(order_for("b"))], START)
    core.step(Stop("a", "stopped"), START)

    assert [progress.node for progress in core.touched(running=False)] == ["a"]
    assert core.touched(running=False) == ()
    assert [progress.node for progress in core.touched()] == ["b"]
