"""Works side by side: their order, how many at once, what an error stops; reads of many nodes together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from reconciler.kubernetes import side_by_side
from reconciler.kubernetes.side_by_side import FIRST, MOST, READS, SideBySide, Together, begin_read
from reconciler.model.errors import Unreachable
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.threads import refused


class _Crowd:
    """Works that know how many of them were done at once; each waits for a crowd, for a bounded time."""

    def __init__(self, crowd: int) -> None:
        self._crowd, self._changed = crowd, threading.Condition()
        self._now = self.most = 0

    def work(self, number: int) -> int:
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._crowd, timeout=0.2)
            self._now -= 1
        return number


def test_results_have_the_order_of_the_works() -> None:
    crowd = _Crowd(1)
    assert SideBySide(lambda: 0)([partial(crowd.work, number) for number in range(40)]) == list(range(40))


def test_success_raises_how_many_are_done_at_once_up_to_the_most() -> None:
    crowd = _Crowd(MOST)
    SideBySide(lambda: 0)([partial(crowd.work, number) for number in range(300)])
    assert crowd.most == MOST


def test_each_throttled_request_halves_how_many_are_done_at_once() -> None:
    throttled = iter(range(1000))
    together = SideBySide(lambda: next(throttled))
    together([partial(_Crowd(1).work, number) for number in range(20)])
    crowd = _Crowd(FIRST)
    together([partial(crowd.work, number) for number in range(5)])
    assert crowd.most == 1


def test_the_first_error_is_raised_and_no_other_work_begins() -> None:
    begun: list[int] = []
    failed = threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            failed.set()
            raise ValueError("lost")
        failed.wait(5)

    with pytest.raises(ValueError, match="lost"):
        SideBySide(lambda: 0)([partial(work, number) for number in range(1000)])
    assert len(begun) <= 2 * MOST


def test_where_no_thread_can_start_the_works_are_done_here_and_a_read_too() -> None:
    with refused(lambda name: name in ("writer", "read")):
        assert SideBySide(lambda: 0)([partial(pow, number, 2) for number in range(5)]) == [0, 1, 4, 9, 16]
        assert begin_read("read", lambda: 7).result() == 7


class _Reads:
    """Reads of nodes, which wait until `go` is set. Reads together leave out the `missing`."""

    def __init__(self, *, enough: float = 2, many: int = 0, turns: int = 1) -> None:
        self.alone: list[str] = []
        self.together: list[Set[str]] = []
        self.missing: frozenset[str] = frozenset()
        self.error: Exception | None = None
        self.go, self._threads = threading.Event(), ThreadPoolExecutor(50)
        self.while_waiting: Callable[[], object] = lambda: None
        self.waits = 0
        self.reader = Together(
            self._read_alone, self._read_together, lambda: enough, lambda: many, turns=turns, sleep=self._wait
        )

    def ask(self, *nodes: str) -> list[Future[str]]:
        """Read these nodes, each in a thread; return when all have asked."""
        expected = self.reader.asked + len(nodes)
        answers = [self._threads.submit(self.reader.of, node) for node in nodes]
        wait_for("all to ask", lambda: self.reader.asked == expected)
        return answers

    def _read_alone(self, node: str) -> str:
        self.alone.append(node)
        self.go.wait(30)
        return f"{node} alone"

    def _read_together(self, nodes: Set[str]) -> Mapping[str, str]:
        self.together.append(nodes)
        self.go.wait(30)
        if self.error is not None:
            raise self.error
        return {node: f"{node} of {len(nodes)}" for node in nodes - self.missing}

    def _wait(self, seconds: float) -> None:
        del seconds
        self.waits += 1
        self.while_waiting()


def _answers(answers: list[Future[str]]) -> list[str]:
    return [answer.result(30) for answer in answers]


def test_one_read_answers_all_that_asked_before_it_began() -> None:
    reads = _Reads()
    first = reads.ask("a")
    wait_for("the first read", lambda: reads.alone == ["a"])
    # What is on the node may have changed since the first read began.
    later = reads.ask("a", "b", "c")
    reads.go.set()
    assert _answers(first) == ["a alone"]
    assert _answers(later) == ["a of 3", "b of 3", "c of 3"]


def test_each_node_is_read_alone_while_too_few_wait() -> None:
    reads = _Reads(enough=9, turns=2)
    answers = reads.ask(*"abcdef")
    wait_for("two reads", lambda: len(reads.alone) == 2)
    reads.go.set()
    assert _answers(answers) == [f"{node} alone" for node in "abcdef"]
    assert not reads.together


def test_a_read_waits_for_others_where_many_may_ask() -> None:
    reads = _Reads(enough=3, many=3, turns=READS)
    reads.go.set()
    others = list[Future[str]]()
    reads.while_waiting = lambda: others.extend(reads.ask("b", "c"))
    assert _answers(reads.ask("a")) == ["a of 3"]
    assert _answers(others) == ["b of 3", "c of 3"]


@pytest.mark.parametrize(("every", "waits"), [(3600.0, 1), (0.0, 2)])
def test_after_too_few_have_come_no_read_waits_for_a_while(
    every: float, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_by_side, "GATHERS_EVERY", every)
    reads = _Reads(enough=3, many=3)
    reads.go.set()
    for node in "ab":
        assert _answers(reads.ask(node)) == [f"{node} alone"]
    assert reads.waits == waits


def test_an_error_is_raised_for_all_that_waited_and_who_is_left_out_is_read_alone() -> None:
    reads = _Reads()
    first = reads.ask("a")
    wait_for("the first read", lambda: reads.alone == ["a"])
    later = reads.ask("b", "c")
    reads.error = Unreachable("down")
    reads.go.set()
    _answers(first)
    for answer in later:
        with pytest.raises(Unreachable, match="down"):
            answer.result(30)

    reads.go.clear()
    reads.error, reads.missing = None, frozenset("y")
    first = reads.ask("x")
    wait_for("the next read", lambda: reads.alone == ["a", "x"])
    later = reads.ask("y", "z")
    reads.go.set()
    assert _answers(later) == ["y alone", "z of 2"]
