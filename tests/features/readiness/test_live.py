"""The readiness on the page of a process: read when it is asked for, rarely, and off the path of all else."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from reconciler.features.readiness.findings import Readiness
from reconciler.features.readiness.live import APART, BEING_READ, SOON, LiveReadiness
from reconciler.model.errors import Unreachable
from reconciler.model.findings import KnownFindings
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import NOW
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.threads import Once, refused

SETTINGS = builders.settings()


def fleet(nodes: int) -> Readiness:
    return Readiness(NOW, "Reboot", nodes, 0, (), ())


class Reads:
    """What reads find, one after the other; their clock, and those that have not been done yet."""

    def __init__(self) -> None:
        self.found: list[Readiness | Exception] = []
        self.time = self.takes = 0.0
        self.waiting: list[Callable[[], None]] = []
        self.live = LiveReadiness(self.read, clock=lambda: self.time, start=self.waiting.append)

    def read(self, _: Settings) -> Readiness:
        self.time += self.takes
        found = self.found.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def known(self) -> KnownFindings:
        return self.live.known(SETTINGS)

    def do(self) -> None:
        self.waiting.pop(0)()

    @property
    def headline(self) -> str:
        part = self.known().part
        return part.headline if part is not None else ""


@pytest.fixture
def reads() -> Reads:
    return Reads()


@pytest.mark.parametrize(("takes", "apart"), [(0.1, SOON), (3, 300), (60, APART)])
def test_what_is_read_fast_is_read_again_soon_however_often_it_is_asked_for(
    reads: Reads, takes: float, apart: float
) -> None:
    reads.found, reads.takes = [fleet(3), fleet(4)], takes
    assert reads.known() == KnownFindings(note=BEING_READ)
    assert reads.known() is reads.known()
    reads.do()

    first = reads.known()
    assert reads.headline == "0 of 3 nodes would not drain; nothing was found"
    reads.time = apart - 1
    assert reads.known() is first
    assert reads.waiting == []

    reads.time = apart
    assert reads.known() == KnownFindings(first.part, BEING_READ)
    reads.do()
    assert reads.headline.startswith("0 of 4 nodes")
    assert reads.known().note == ""


def test_no_read_begins_while_another_one_is_under_way(reads: Reads) -> None:
    reads.known()
    reads.time = APART * 5
    reads.known()

    assert len(reads.waiting) == 1


def test_what_was_known_stays_when_a_read_fails_with_the_reason_and_without_a_try_at_once(
    reads: Reads,
) -> None:
    reads.found = [fleet(3), Unreachable("no answer"), ZeroDivisionError("a bug")]
    reads.known()
    reads.do()
    reads.time = APART
    reads.known()
    reads.do()

    assert reads.known().note == "Readiness can't be read: no answer."
    assert reads.headline.startswith("0 of 3 nodes")
    reads.time = APART * 2 - 1
    reads.known()
    assert reads.waiting == []

    reads.time = APART * 2
    reads.known()
    reads.do()
    assert reads.known().note == "Readiness can't be read: internal error: ZeroDivisionError: a bug."
    assert reads.headline.startswith("0 of 3 nodes")


def test_nobody_waits_for_a_read() -> None:
    answered = threading.Event()

    def read(_: Settings) -> Readiness:
        assert answered.wait(60)
        return fleet(3)

    live = LiveReadiness(read)
    assert live.known(SETTINGS).note == BEING_READ
    answered.set()
    wait_for("readiness", lambda: live.known(SETTINGS).part is not None)


def test_a_process_that_may_start_no_thread_says_so_and_tries_again() -> None:
    live = LiveReadiness(lambda _: fleet(3))
    with refused(Once("readiness")):
        assert "can't start new thread" in live.known(SETTINGS).note
    wait_for("readiness", lambda: live.known(SETTINGS).part is not None)
