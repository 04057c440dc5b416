"""Work beside a pass: how long the pass waits, which answer counts, and what is not asked twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from reconciler.kubernetes.scale.beside import FRESH, ThreadsBeside
from reconciler.model.errors import ClusterError, Forbidden, Late, Unreachable
from reconciler.model.ports import COUNTS, MOST, AtOnce
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.threads import refused

SHORT = 0.1
"""Seconds for which the passes of these tests wait."""

PODS = ("pods of", "a")


class _Time:
    """The clock of ages, which a test sets."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class _Server:
    """Answers only while it is open. `asked` counts requests; `came` the calls for late answers."""

    def __init__(self) -> None:
        self.open, self.came = threading.Event(), threading.Event()
        self.asked, self.answer = 0, "new"
        self.clock = _Time()
        self.beside = ThreadsBeside(self.came.set, seconds=self.clock)
        self.beside.begins(SHORT)

    def read(self) -> str:
        self.asked += 1
        self.open.wait()
        if self.answer == "error":
            raise Unreachable("503")
        return self.answer

    def ask(self, what: tuple[str, ...] = PODS, **options: Any) -> str:
        return self.beside.read(what, self.read, **options)

    def is_late(self, ask: Callable[[], object]) -> bool:
        with pytest.raises(Late):
            ask()
        return self.beside.late


@pytest.fixture
def server() -> Iterator[_Server]:
    made = _Server()
    yield made
    made.open.set()


def test_a_pass_waits_for_a_late_answer_once_and_does_not_ask_again(server: _Server) -> None:
    assert server.is_late(server.ask)
    server.beside.begins(60)

    # It hangs, so the next pass goes on at once: this would else take a minute.
    assert server.is_late(server.ask)
    assert server.asked == 1


def test_a_late_answer_wakes_a_pass_which_takes_it_as_new(server: _Server) -> None:
    server.is_late(server.ask)
    server.open.set()
    assert server.came.wait(10)
    server.beside.begins(SHORT)

    assert (server.ask(), server.beside.late, server.asked) == ("new", False, 1)
    server.clock.ahead += FRESH + 1
    server.ask()
    assert server.asked == 2


def test_an_answer_in_time_is_asked_for_again_and_wakes_nobody(server: _Server) -> None:
    server.open.set()

    assert (server.ask(), server.ask(), server.asked) == ("new", "new", 2)
    assert not server.came.is_set()


def test_an_answer_lasts_for_as_long_as_the_reader_says(server: _Server) -> None:
    server.open.set()
    assert (server.ask(lasts=5), server.ask(lasts=5), server.asked) == ("new", "new", 1)
    server.clock.ahead += 6
    server.ask(lasts=5)
    assert server.asked == 2


@pytest.mark.parametrize("fails", [False, True], ids=["no answer", "an error"])
def test_the_last_answer_counts_for_a_while_where_no_newer_one_comes(server: _Server, fails: bool) -> None:
    server.open.set()
    server.ask(counts=COUNTS)
    server.answer = "error" if fails else "newer"
    if not fails:
        server.open.clear()

    assert server.ask(counts=COUNTS) == "new"
    assert server.beside.late is not fails
    server.clock.ahead += COUNTS + 1
    with pytest.raises(Unreachable):
        server.ask(counts=COUNTS)


def test_only_an_answer_that_is_missing_is_replaced_by_an_older_one(server: _Server) -> None:
    server.open.set()
    server.ask(counts=COUNTS)

    def refused() -> str:
        raise Forbidden("403")

    with pytest.raises(Forbidden):
        server.beside.read(PODS, refused, counts=COUNTS)


@pytest.mark.parametrize("patience", [SHORT, None])
def test_an_answer_that_breaks_the_program_is_one_that_can_not_be_used(
    server: _Server, patience: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> str:
        raise KeyError("spec")

    server.beside.begins(patience)
    for beside in (server.beside, AtOnce()):
        with pytest.raises(ClusterError, match=r"^KeyError: 'spec'$"):
            beside.read(PODS, broken)

    assert caplog.text.count("internal error: no answer to: pods of a: KeyError") == 2


def test_so_many_of_a_kind_may_hang_and_others_are_asked(server: _Server) -> None:
    for number in range(MOST + 2):
        assert server.is_late(partial(server.ask, ("pods of", str(number))))

    assert server.asked == MOST
    assert server.beside.read(("budgets",), lambda: "b") == "b"


def test_what_is_needed_is_waited_for(server: _Server) -> None:
    threading.Timer(3 * SHORT, server.open.set).start()

    assert server.beside.read(PODS, server.read, needed=True) == "new"


def test_a_pass_that_waits_takes_the_answer_that_another_one_went_on_without(server: _Server) -> None:
    server.is_late(server.ask)
    server.beside.begins(None)
    threading.Timer(SHORT, server.open.set).start()

    assert (server.ask(), server.asked, server.beside.late) == ("new", 1, False)


def test_an_answer_that_was_asked_for_before_does_not_count_once_it_is_forgotten(server: _Server) -> None:
    server.is_late(server.ask)
    server.beside.forget(PODS)
    server.is_late(server.ask)
    assert server.asked == 2
    server.beside.note(PODS, "written", counts=COUNTS)
    server.open.set()
    wait_for("the threads to end", lambda: not _threads())

    server.open.clear()
    assert server.ask() == "written"


def test_what_is_read_ahead_is_asked_for_once(server: _Server) -> None:
    for _ in range(2):
        server.open.clear()
        server.beside.begin(PODS, server.read)
        server.open.set()
        wait_for("the threads to end", lambda: not _threads())
        assert server.ask() == "new"
    assert server.asked == 2


def test_the_same_is_not_written_again_while_a_write_hangs(server: _Server) -> None:
    assert server.is_late(partial(server.beside.write, PODS, server.read))
    assert server.is_late(partial(server.beside.write, PODS, server.read))
    assert server.asked == 1
    server.open.set()
    assert server.came.wait(10)

    assert (server.beside.write(PODS, server.read), server.asked) == ("new", 2)


def test_without_a_thread_what_is_asked_for_is_unknown_unless_it_is_needed(server: _Server) -> None:
    with refused(lambda name: name == "beside: pods of"):
        for _ in range(MOST + 1):
            assert server.is_late(server.ask)
        server.open.set()
        assert server.ask(needed=True) == "new"
    assert (server.ask(), server.asked) == ("new", 2)


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("beside")]
