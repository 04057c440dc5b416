"""`reconciler history FILE --observed`, as somebody types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.runtime.log_line import log_line
from reconciler.features.observed import OBSERVED
from reconciler.features.observed.cases import to_fields
from reconciler.model.values import replace
from tests.features.observed.test_summary import BLOCKED, MISSED, case


def written(folder: Path, *lines: str) -> str:
    """A file of `--history` with these lines."""
    path = folder / "history.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


LINES = [log_line(OBSERVED, **to_fields(each)) for each in (case("a"), MISSED, BLOCKED)]
OTHER = '{"event": "case", "node": "x"}'


def test_a_file_has_the_cases_that_are_over_each_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, *LINES, OTHER, LINES[0])

    assert main(["history", file, "--observed"]) == 0
    assert capsys.readouterr().out.startswith(
        "3 nodes were announced; 1 would have been drained in time, 1 missed (no window before the "
    )
    assert main(["history", file, "--observed", "--node", "c", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["node"] for each in document["cases"]] == ["c"]
    assert document["observedSeconds"] is None
    assert document["steps"] == []
    assert main(["history", file, "--observed", "-o", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "observed", "node": 7}',
        '{"event": "observed"',
        '{"event": "observed", "x": [[[[[[]]]]]]}',
        '{"event": "observed", "x": %s' % ("[" * 60_000),
    ],
    ids=["a wrong type", "cut", "another document", "without an end"],
)
def test_a_line_that_can_not_be_read_is_said_and_the_others_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert main(["history", written(tmp_path, line, *LINES), "--observed"]) == 1
    shown = capsys.readouterr()
    assert "1 line about cases can't be read" in shown.err
    assert "3 nodes were announced" in shown.out


def test_a_file_that_is_not_there_and_two_views_are_usage_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", str(tmp_path / "missing"), "--observed"]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["history", written(tmp_path), "--observed", "--cases"]) == 2
    assert "leave them out" in capsys.readouterr().err


def test_a_case_is_read_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = replace(BLOCKED, node="\x1b[2J\n=1", because='"\\')
    assert main(["history", written(tmp_path, log_line(OBSERVED, **to_fields(odd))), "--observed"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.startswith("=1")]
