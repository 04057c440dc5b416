"""The one way to start a thread: nothing else starts one, and a pool does with the threads that there are."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from reconciler.model.errors import NoThread
from reconciler.threads import Pool, begin_read, start
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.threads import Once, refused

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "reconciler" / "threads.py"
STARTERS = {
    *("Thread", "Timer", "_start_new_thread", "start_new_thread", "start_joinable_thread", "to_thread"),
    *("ThreadPoolExecutor", "ProcessPoolExecutor", "ThreadPool", "Executor", "run_in_executor"),
    *("ThreadingHTTPServer", "ThreadingTCPServer", "ThreadingMixIn"),
}
"""Names of the standard library with which a thread starts at once, or later without a word."""


def starters(text: str) -> Iterator[int]:
    """Yield the line of each use of such a name, apart from annotations: there it is only a type."""
    if not any(name in text for name in STARTERS):
        return
    tree = ast.parse(text)
    types = {
        each
        for node in ast.walk(tree)
        if isinstance(node, ast.arg | ast.AnnAssign | ast.FunctionDef)
        for note in (node.returns if isinstance(node, ast.FunctionDef) else node.annotation,)
        if note is not None
        for each in ast.walk(note)
    }
    for node in ast.walk(tree):
        if node not in types:
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) if name in STARTERS:
                    yield node.lineno


def test_no_other_file_starts_a_thread() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("reconciler", "jobs")
        for path in (ROOT / folder).rglob("*.py")
        if path != PLACE
        for line in starters(path.read_text(encoding="utf-8"))
    ]
    assert places == [], "start it by reconciler.threads, and change what is known after that"


def test_a_thread_that_is_started_elsewhere_is_found() -> None:
    text = "import threading\nx: threading.Thread | None = None\nthreading.Thread(target=print).start()\n"
    assert list(starters(text)) == [3]


def test_nothing_draws_from_the_generator_that_all_threads_share() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("reconciler", "jobs")
        for path in (ROOT / folder).rglob("*.py")
        if "random" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "random"
        and node.attr not in {"Random", "SystemRandom"}
    ]
    assert places == [], "a test sets its seed, and a property refuses a draw of another thread"


def test_a_thread_that_can_not_start_says_what_to_do() -> None:
    with refused(Once("work")), pytest.raises(NoThread, match="raise the limit of processes of the Pod"):
        start("work", lambda: None)
    done = threading.Event()
    thread = start("work", done.set)
    assert done.wait(60)
    assert thread.daemon


def _waits(begun: threading.Event, go: threading.Event) -> None:
    begun.set()
    go.wait(60)


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool("pool", 3)
    yield made
    made.close(60)


def test_a_pool_has_as_many_threads_as_work_at_a_time_and_no_more(pool: Pool) -> None:
    go, names = threading.Event(), set[str]()
    done: list[int] = []

    def work(number: int) -> None:
        names.add(threading.current_thread().name)
        go.wait(60)
        done.append(number)

    for number in range(10):
        pool.submit(partial(work, number))
    wait_for("three works at a time", lambda: len(names) == 3)
    go.set()
    wait_for("all works", lambda: len(done) == 10)
    assert names == {"pool_0", "pool_1", "pool_2"}


def test_a_work_that_fails_ends_no_thread(pool: Pool) -> None:
    done = threading.Event()
    for _ in range(5):
        pool.submit(lambda: 1 / 0)
    pool.submit(done.set)
    assert done.wait(60)


def test_a_pool_does_with_the_threads_that_it_has(pool: Pool) -> None:
    begun, go, done = threading.Event(), threading.Event(), threading.Event()
    with refused(lambda name: name != "pool_0"):
        pool.submit(partial(_waits, begun, go))
        pool.submit(done.set)
        assert begun.wait(60)
        assert not done.is_set()
        go.set()
        assert done.wait(60)


def test_a_pool_without_any_thread_keeps_no_work(pool: Pool) -> None:
    done: list[str] = []
    with refused(Once("pool_0")), pytest.raises(NoThread):
        pool.submit(lambda: done.append("refused"))
    pool.submit(lambda: done.append("taken"))
    wait_for("the work", lambda: done)
    assert done == ["taken"]


def test_the_end_of_a_pool_begins_nothing_and_waits_no_longer_than_it_may(pool: Pool) -> None:
    begun, go = threading.Event(), threading.Event()
    done: list[int] = []
    for _ in range(3):
        pool.submit(partial(_waits, begun, go))
    pool.submit(lambda: done.append(1))
    assert begun.wait(60)
    assert not pool.close(0.05)
    go.set()
    assert pool.close()
    assert done == []


def test_where_no_thread_can_start_a_read_is_done_at_once() -> None:
    with refused(lambda name: name == "read"):
        assert begin_read("read", lambda: 7).result() == 7
