"""One read for many nodes: who waits for whom, and which answer each gets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from reconciler.kubernetes.scale import together
from reconciler.kubernetes.scale.together import READS, Together
from reconciler.model.errors import Unreachable
from tests.support.controlplane.processes import wait_for


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
        # The first of them may have others ask before this is looked at.
        wait_for("all to ask", lambda: self.reader.asked >= expected)
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


class _SlowToWake(threading.Condition):
    """Whoever waits goes on only when `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        notified = super().wait(timeout)
        self.release()
        self.go.wait(30)
        self.acquire()
        return notified


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


def test_who_only_fetches_an_answer_lets_nobody_else_lead_while_another_read_gathers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed = _SlowToWake()
    monkeypatch.setattr(together, "threading", SimpleNamespace(Condition=lambda: changed))
    reads = _Reads(many=2, turns=2)
    reads.go.set()
    others = list[Future[str]]()
    reads.while_waiting = lambda: others.extend(reads.ask("b"))
    assert _answers(reads.ask("a")) == ["a of 2"]

    def fetch_and_ask() -> None:
        reads.while_waiting = lambda: None
        changed.go.set()
        assert _answers(others) == ["b of 2"]
        others.extend(reads.ask("d"))

    # Its answer is there, but "b" fetches it only now, while "c" gathers.
    reads.while_waiting = fetch_and_ask
    assert _answers(reads.ask("c")) == ["c of 2"]
    assert _answers(others) == ["b of 2", "d of 2"]
    assert reads.together == [{"a", "b"}, {"c", "d"}]


@pytest.mark.parametrize(("every", "waits"), [(3600.0, 1), (0.0, 2)])
def test_after_too_few_have_come_no_read_waits_for_a_while(
    every: float, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "GATHERS_EVERY", every)
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
