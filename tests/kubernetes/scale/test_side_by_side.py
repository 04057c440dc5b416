"""Works side by side: their order, how many at once, what an error stops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from reconciler.kubernetes.scale import side_by_side
from reconciler.kubernetes.scale.beside import ThreadsBeside
from reconciler.kubernetes.scale.side_by_side import FIRST, MOST, MOST_LATE, SideBySide
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
def test_what_hung_the_last_time_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST", "MOST"):
        monkeypatch.setattr(side_by_side, name, 1)
    works = _Hanging(0)
    works.late(3)
    works.over.set()
    wait_for("its end", lambda: works.came)
    for order in ([1, 2, 0], [0, 1, 2]):
        works.begun.clear()
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
