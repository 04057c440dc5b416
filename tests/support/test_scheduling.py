"""How workers get tests: in order, the first worker from the end, and files that share a fixture as one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.scheduling import Scheduling


@dataclass(eq=False, slots=True)
class Worker:
    """What the scheduler asks of a worker; `got` are the tests that it was sent, by their places."""

    gateway: Any = field(default_factory=lambda: SimpleNamespace(id="gw"))
    got: list[int] = field(default_factory=list)
    shutting_down: bool = False

    def send_runtest_some(self, places: list[int]) -> None:
        self.got += places

    def shutdown(self) -> None:
        self.shutting_down = True


@dataclass(frozen=True, slots=True)
class Config:
    """A run with two workers, and its files in a folder."""

    rootpath: Path
    option: Any = field(default_factory=lambda: SimpleNamespace(loadscopereorder=False))

    def getvalue(self, name: str) -> list[str]:
        assert name == "tx"
        return ["2*popen"]


@pytest.fixture
def workers(tmp_path: Path) -> tuple[Worker, Worker]:
    """Two workers that have each run every test that they were sent."""
    (tmp_path / "alone.py").write_text("", encoding="utf-8")
    (tmp_path / "shared.py").write_text('@pytest.fixture(scope="module")\n', encoding="utf-8")
    alone = [f"alone.py::test_{number}" for number in range(20)]
    tests = [*alone[:10], "shared.py::test_a", "shared.py::test_b", "shared.py::test_c", *alone[10:]]
    made = Worker(), Worker()
    scheduling = Scheduling(cast(pytest.Config, Config(tmp_path)))
    for worker in cast(Any, made):
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, tests)
    scheduling.schedule()
    done = [0, 0]
    while any(len(worker.got) > done[number] for number, worker in enumerate(made)):
        for number, worker in enumerate(made):
            if len(worker.got) > done[number]:
                done[number] += 1
                scheduling.mark_test_complete(cast(Any, worker), worker.got[done[number] - 1])
    return made


def test_each_test_goes_to_one_worker_and_the_first_begins_at_the_end(workers: tuple[Worker, Worker]) -> None:
    first, second = workers

    assert sorted(first.got + second.got) == list(range(23))
    assert first.got[:5] == [22, 21, 20, 19, 18]
    assert second.got[:5] == [0, 1, 2, 3, 4]


def test_tests_that_share_a_fixture_go_to_one_worker(workers: tuple[Worker, Worker]) -> None:
    assert {sum(10 <= place < 13 for place in worker.got) for worker in workers} == {0, 3}
