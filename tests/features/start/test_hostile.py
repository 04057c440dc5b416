"""What others have written can't break a line, a row or the terminal of who starts a node, at any width."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.features.start.test_commands import HOLD, Cluster
from tests.support.builders import REQUEST

NAME = "pool-000001"
FORGED = "  then      it ends"
"""A row of ours, as somebody else may write it."""

CONTROLS = "\x1b\x07\r\x85\x9b\u202e\u2028\u2066\U000e0001"
HOSTILE = f"\x1b[2J\x1b]0;title\r\n{FORGED}{CONTROLS}{' 漢字 long' * 30}{FORGED * 20}"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


def check(text: str, columns: int) -> None:
    """No line is longer than the terminal is wide, unless it is one word, and none is written by others."""
    lines = text.splitlines()
    assert lines
    assert set(CONTROLS).isdisjoint(text)
    assert [line for line in lines if cell_len(line) > columns and len(line.split()) > 1] == []
    assert [line for line in lines if line.startswith(FORGED)] == []


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize(
    "annotations",
    [{}, {HOLD: json.dumps({"by": HOSTILE[:200], "reason": HOSTILE})}, {HOLD: HOSTILE}, {REQUEST: HOSTILE}],
    ids=["its reason", "a hold", "a hold by hand", "an unreadable request"],
)
def test_what_others_wrote_is_told_in_lines_that_fit(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    annotations: dict[str, str],
    columns: int,
) -> None:
    cluster.annotations(NAME).update(annotations)
    monkeypatch.setenv("COLUMNS", str(columns))
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)

    # The second one is told who has started it.
    for _ in range(2):
        cluster.run("start", NAME, "--now", "--yes", "--reason", HOSTILE)
        said = capsys.readouterr()
        check(said.out, columns)
        check(said.err or said.out, columns)

    for event in cluster.events:
        assert set(CONTROLS).isdisjoint(event["message"])
        assert "\n" not in event["message"]


def test_programs_read_the_reason_as_it_is_and_a_terminal_no_control_character(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.run("start", NAME, "--now", "--yes", "-o", "json", "--reason", HOSTILE)
    printed = capsys.readouterr().out

    assert set(CONTROLS).isdisjoint(printed)
    assert HOSTILE[:200] in json.loads(printed)["start"]["message"]
    assert cluster.said["reason"] == HOSTILE
