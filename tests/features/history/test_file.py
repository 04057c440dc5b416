"""The file of --history: a clear error at the start, whole lines, and no harm later."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from jobs.cli import main
from reconciler.features.history import file as history_file
from reconciler.features.history.file import CaseHistory, HistoryFile
from reconciler.features.history.process import HISTORY_FAILED
from reconciler.model.ended_case import from_fields
from reconciler.model.errors import OutputError
from tests.docs.pages import written
from tests.support.builders import NOW
from tests.support.cases import ended


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def kept(path: Path, troubles: list[str] | None = None) -> CaseHistory:
    return CaseHistory(HistoryFile(path), (troubles if troubles is not None else []).append)


def test_each_case_is_a_line_behind_those_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    kept(path).keep([ended("a"), ended("b")])
    kept(path).keep([ended("c")])
    found = [json.loads(line) for line in lines(path)]

    assert [from_fields(one) for one in found] == [ended("a"), ended("b"), ended("c")]
    assert {one["event"] for one in found} == {"case"}


def test_a_line_that_was_cut_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text('{"event": "ca', encoding="utf-8")
    kept(path).keep([ended()])
    cut, whole = lines(path)

    assert cut == '{"event": "ca'
    assert from_fields(json.loads(whole)) == ended()


def test_a_file_that_is_moved_away_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = kept(path)
    history.keep([ended("a")])
    path.rename(tmp_path / "history.1")
    history.keep([ended("b")])

    assert (len(lines(tmp_path / "history.1")), len(lines(path))) == (1, 1)


def test_a_write_that_fails_is_reported_once_and_the_next_one_tried(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    troubles: list[str] = []
    history = kept(path, troubles)
    path.unlink()
    path.mkdir()
    history.keep([ended("a")])
    history.keep([ended("b")])
    assert troubles == [f"{path}: can't be written: Is a directory"]

    path.rmdir()
    history.keep([ended("c")])
    path.unlink()
    path.mkdir()
    history.keep([ended("d")])

    assert len(troubles) == 2


def test_a_disk_that_takes_a_part_of_a_line_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.jsonl"
    troubles: list[str] = []
    history = kept(path, troubles)
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, data: write(file, data[:10]))
        history.keep([ended("a")])
    history.keep([ended("b")])

    assert troubles == [f"{path}: can't be written: only a part of the line was written"]
    assert [len(line) > 10 for line in lines(path)] == [False, True]


class _Silent(HistoryFile):
    """A file whose writes do not end until `over` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.over = threading.Event()

    def append(self, lines: Sequence[str]) -> None:
        self.over.wait(10)
        super().append(lines)


def test_a_file_that_does_not_answer_holds_no_pass_and_what_does_not_fit_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "WAITS", 0.1)
    monkeypatch.setattr(history_file, "MOST", 2)
    path, troubles = tmp_path / "history.jsonl", list[str]()
    file = _Silent(path)
    history = CaseHistory(file, troubles.append)
    history.keep([ended("a")])
    monkeypatch.setattr(history_file, "WAITS", 60)
    for name in "bcde":
        history.keep([ended(name)])
    assert troubles == [f"{path}: no answer to a write; what ends is kept for it meanwhile"]

    file.over.set()
    history.stopped()
    assert [from_fields(json.loads(line)) for line in lines(path)] == [ended(name) for name in "abc"]
    assert troubles[1:] == [f"{path}: 2 cases are not in it: it gave no answer"]
    # A pass waits for its cases again.
    history.keep([ended("f")])
    assert len(lines(path)) == 4


def test_other_lines_are_kept_too_and_leave_room_for_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "WAITS", 0.1)
    monkeypatch.setattr(history_file, "MOST", 3)
    monkeypatch.setattr(history_file, "MOST_OTHERS", 2)
    path, troubles = tmp_path / "history.jsonl", list[str]()
    file = _Silent(path)
    history = CaseHistory(file, troubles.append)
    history.keep([ended("a")])
    for number in range(3):
        history.happened("other", {"number": number})
    history.keep([ended("b")])
    file.over.set()
    history.stopped()

    assert [json.loads(line)["event"] for line in lines(path)] == ["case", "other", "other", "case"]
    assert troubles[-1] == f"{path}: 1 other line is not in it: it gave no answer"


def test_the_end_of_a_process_does_not_wait_for_a_file_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "WAITS", 0.1)
    monkeypatch.setattr(history_file, "LAST", 0.1)
    troubles = list[str]()
    file = _Silent(tmp_path / "history.jsonl")
    history = CaseHistory(file, troubles.append)
    for name in "ab":
        history.keep([ended(name)])
    history.stopped()
    assert troubles[-1] == f"{file.path}: no answer to a write; 1 more case is not in it"
    file.over.set()


def test_a_file_that_gives_no_answer_does_not_hold_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    over = threading.Event()

    def hang(*_: object) -> None:
        over.wait(10)
        raise OSError("over")

    monkeypatch.setattr(history_file, "START", 0.1)
    for name in ("check_output", "recent_cases"):
        monkeypatch.setattr(history_file, name, hang)
    assert kept(tmp_path / "history.jsonl").past(NOW, NOW) is None
    assert "gives no answer; the start goes on without it" in caplog.text
    assert "gives no answer, so the page begins without its cases" in caplog.text
    over.set()


def test_a_pipe_that_nobody_reads_is_an_error_and_no_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OutputError, match=r"pipe: can't be written: "):
        HistoryFile(tmp_path / "pipe")


@pytest.mark.parametrize("command", ["sweep", "serve"])
def test_a_file_that_cannot_be_written_ends_the_command_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "maintenance.yaml").touch()
    where = ["--config", str(tmp_path / "maintenance.yaml"), "--kubeconfig", "/no/such/file"]

    assert main([command, *where, "--history", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path}: can't be written: Is a directory\n"
    assert main([command, *where, "--history", str(tmp_path / "no" / "file")]) == 2
    assert "does not exist; create it with: mkdir -p" in capsys.readouterr().err


def test_the_event_of_the_log_is_described() -> None:
    assert f"`{HISTORY_FAILED}`" in written("operating.md")
