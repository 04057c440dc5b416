"""Works side by side: their order, how many at once, what an error stops; reads of many nodes together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from reconciler.kubernetes import side_by_side
from reconciler.kubernetes.beside import ThreadsBeside
from reconciler.kubernetes.side_by_side import FIRST, MOST, MOST_LATE, READS, SideBySide, Together
from reconciler.model.errors import Late, Unreachable
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


def _named(work: Callable[[int], int], count: int) -> Mapping[str, Callable[[], int]]:
    return {str(number): partial(work, number) for number in range(count)}


def test_each_work_has_its_result() -> None:
    expected = {str(number): number for number in range(40)}
    assert SideBySide(lambda: 0)(_named(_Crowd(1).work, 40)) == expected


def test_success_raises_how_many_are_done_at_once_up_to_the_most() -> None:
    crowd = _Crowd(MOST)
    SideBySide(lambda: 0)(_named(crowd.work, 300))
    assert crowd.most == MOST


def test_each_throttled_request_halves_how_many_are_done_at_once() -> None:
    throttled = iter(range(1000))
    together = SideBySide(lambda: next(throttled))
    together(_named(_Crowd(1).work, 20))
    crowd = _Crowd(FIRST)
    together(_named(crowd.work, 5))
    assert crowd.most == 1


def test_the_first_error_is_raised_and_no_other_work_begins() -> None:
    begun: list[int] = []
    ended = threading.Semaphore(0)

    def work(number: int) -> int:
        begun.append(number)
        if number == 0:
            raise ValueError("lost")
        ended.acquire(timeout=5)
        return number

    together = SideBySide(lambda: 0, lambda: ended.release(1000) if begun else None)
    with pytest.raises(ValueError, match="lost"):
        together(_named(work, 1000))
    assert len(begun) <= MOST


class _Hanging:
    """Works of which some hang until `over` is set."""

    def __init__(self, *hanging: int) -> None:
        self.hanging, self.over = set(hanging), threading.Event()
        self.begun: list[int] = []
        self.came = 0
        self.beside = ThreadsBeside(self._comes)
        self.together = SideBySide(lambda: 0, beside=self.beside)

    def work(self, number: int) -> int:
        self.begun.append(number)
        if number in self.hanging:
            self.over.wait(20)
        return number

    def late(self, count: int, *, patience: float | None = 1.0) -> set[str]:
        """Do so many works in a pass; return the names of the late ones."""
        self.beside.begins(patience)
        results = self.together(_named(self.work, count))
        late = {name for name, result in results.items() if isinstance(result, Late)}
        assert all(results[name] == int(name) for name in results.keys() - late)
        assert self.beside.late is bool(late)
        return late

    def _comes(self) -> None:
        self.came += 1


@pytest.fixture
def soon_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "HANGS", 0.2)


@pytest.mark.usefixtures("soon_late")
def test_a_work_that_hangs_is_left_and_not_begun_again_until_it_ends() -> None:
    # As many as are done at once in the beginning: the threads that wait for these do the others.
    many, others = FIRST + 1, 3
    works, first = _Hanging(*range(many)), {str(number) for number in range(many)}
    assert works.late(many + others) == first
    assert works.late(many + others) == first
    assert [works.begun.count(number) for number in range(many + others)] == [1] * many + [2] * others
    works.over.set()
    wait_for("the end of all", lambda: works.came == many)
    assert works.late(many + others) == set()


@pytest.mark.usefixtures("soon_late")
def test_after_too_many_that_hang_the_next_pass_goes_on_with_the_others() -> None:
    # More than the ones that are late, and those that are done at once when the last of them is.
    hanging = MOST_LATE + MOST + 4
    works = _Hanging(*range(hanging))
    assert len(works.late(hanging + 4)) == hanging + 4
    works.late(hanging + 4)
    assert works.late(hanging + 4) == {str(number) for number in range(hanging)}
    works.over.set()


@pytest.mark.usefixtures("soon_late")
def test_what_hung_the_last_time_comes_last() -> None:
    works = _Hanging(0)
    works.late(3)
    works.over.set()
    wait_for("its end", lambda: works.came)
    for order in ([1, 2, 0], [0, 1, 2]):
        works.begun.clear()
        works.together._most = 1.0
        works.late(3)
        assert works.begun == order


@pytest.mark.usefixtures("soon_late")
def test_no_more_hang_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "MOST_HANGING", FIRST)
    works = _Hanging(*range(1000))
    works.late(FIRST)
    assert works.late(1000) == set(map(str, range(1000)))
    assert len(works.begun) == FIRST
    works.over.set()


@pytest.mark.usefixtures("soon_late")
def test_a_pass_that_waits_for_each_answer_waits_for_its_writes() -> None:
    works = _Hanging(1)
    threading.Timer(0.5, works.over.set).start()
    assert works.late(3, patience=None) == set()


@pytest.mark.usefixtures("soon_late")
def test_the_failure_of_a_late_work_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    works = _Hanging(1)

    def fails(number: int) -> int:
        works.work(number)
        raise Unreachable("cut")

    works.beside.begins()
    works.together({"a": partial(fails, 1)})
    works.over.set()
    wait_for("its end", lambda: works.came)
    assert "node a: no answer to its write came in time, then it failed: cut" in caplog.text


def test_where_no_thread_can_start_the_works_are_done_here() -> None:
    with refused(lambda name: name == "writer"):
        works = {str(number): partial(pow, number, 2) for number in range(5)}
        assert SideBySide(lambda: 0)(works) == {"0": 0, "1": 1, "2": 4, "3": 9, "4": 16}


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


def test_who_only_fetches_an_answer_lets_nobody_else_lead_while_another_read_gathers() -> None:
    reads = _Reads(many=2, turns=2)
    changed = reads.reader._changed = _SlowToWake()
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
