"""What is kept of deeds and cases: each deed is told once, after it is kept, whichever process saw it."""

from __future__ import annotations

from datetime import timedelta
from threading import Event

import pytest

from jobs.runtime.line_keeper import Keeper
from reconciler.features.history.kept import HISTORY, HistoryLine
from reconciler.features.history.recorder import Recorder
from reconciler.features.history.remembered import Look
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.kept_lines import KeptInCluster, KeptLines, packed, unpacked
from reconciler.model.errors import Unreachable
from reconciler.model.instructions import Word
from reconciler.model.sayings import Deed, NodeSayings, Saying
from tests.support.builders import NOW
from tests.support.cases import ended

KEEP = timedelta(days=90)


class Shelf(KeptInCluster[HistoryLine]):
    """A ConfigMap in memory; `fails` counts the writes that get no answer."""

    def __init__(self, fails: int = 0) -> None:
        super().__init__(HISTORY, Connection.__new__(Connection), "node-maintenance")
        self.data: dict[str, str] | None = None
        self.fails = fails
        self.writes = 0

    def read(self) -> KeptLines[HistoryLine] | None:
        return unpacked(HISTORY, self.data) if self.data is not None else None

    def write(self, kept: KeptLines[HistoryLine]) -> None:
        self.writes += 1
        if self.fails:
            self.fails -= 1
            raise Unreachable("no answer")
        self.data = packed(HISTORY, kept)

    @property
    def lines(self) -> tuple[HistoryLine, ...]:
        found = self.read()
        return found.lines if found is not None else ()


class Process:
    """One process with its recorder; `told` are the deeds that it told of."""

    def __init__(self, shelf: Shelf, keep: timedelta = KEEP, every: float = 60) -> None:
        self.told: list[Deed] = []
        self.some = Event()
        self.recorder = Recorder(shelf, lambda: NOW, lambda: keep, self.tell, every=every)

    def tell(self, deed: Deed) -> None:
        self.told.append(deed)
        self.some.set()


def saw(*names: str) -> Look:
    """A pass saw that people hold these nodes."""
    said = (Saying("hold", "held", Word("alice", NOW), "mark", "hold ended"),)
    return Look(NOW, {name: NodeSayings(name, f"uid-{name}", said) for name in names}, frozenset({"uid-a"}))


def test_a_deed_is_told_once_it_is_kept_and_by_no_other_process() -> None:
    shelf = Shelf()
    first, second = Process(shelf), Process(shelf)
    first.recorder.saw(saw("a"))
    first.recorder.add(ended("b"))
    first.recorder.close()
    second.recorder.saw(saw("a"))
    second.recorder.close()

    assert [deed.node for deed in first.told] == ["a"]
    assert second.told == []
    assert shelf.writes == 1
    assert {type(line).__name__ for line in shelf.lines} == {"Deed", "EndedCase"}


def test_a_write_without_an_answer_is_tried_again_and_told_once() -> None:
    shelf = Shelf(fails=2)
    process = Process(shelf, every=0.01)
    process.recorder.saw(saw("a"))
    assert process.some.wait(30)
    process.recorder.close()

    assert len(process.told) == 1
    assert shelf.writes == 3


def test_what_ended_while_no_process_ran_is_seen_by_the_next_one() -> None:
    shelf = Shelf()
    first, second = Process(shelf), Process(shelf)
    first.recorder.saw(saw("a"))
    first.recorder.close()
    second.recorder.saw(saw())
    second.recorder.close()

    assert [deed.did for deed in second.told] == ["hold ended"]


def test_where_nothing_is_kept_only_what_changes_meanwhile_is_told() -> None:
    shelf = Shelf()
    process = Process(shelf, timedelta())
    process.recorder.saw(saw("a"))
    process.recorder.saw(saw("a", "b"))
    process.recorder.add(Deed(NOW, "settings changed"))
    process.recorder.close()

    assert [(deed.node, deed.did) for deed in process.told] == [("b", "held"), ("", "settings changed")]
    assert shelf.data is None


@pytest.mark.parametrize("data", [{}, {"lines": "?"}])
def test_what_somebody_else_has_written_there_is_replaced(
    data: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf()
    shelf.data = data
    keeper: Keeper[HistoryLine, HistoryLine] = Keeper(
        shelf, lambda: NOW, lambda: KEEP, lambda kept, lines, since: kept.with_lines(HISTORY, lines, since)
    )
    keeper.add(ended("b", at=NOW))
    keeper.close()

    assert len(shelf.lines) == 1
    assert "can't be read, and begins again" in caplog.text


def test_once_nothing_is_kept_any_more_nothing_is_written() -> None:
    shelf, keep = Shelf(), [KEEP]
    earlier: KeptLines[HistoryLine] = KeptLines(NOW, (ended("a", at=NOW),))
    shelf.data = before = packed(HISTORY, earlier)
    keeper: Keeper[HistoryLine, HistoryLine] = Keeper(
        shelf, lambda: NOW, lambda: keep[0], lambda kept, lines, since: kept.with_lines(HISTORY, lines, since)
    )
    keeper.add(ended("b", at=NOW))
    keep[0] = timedelta()
    keeper.close()

    assert (shelf.writes, shelf.data) == (0, before)
