"""`reconciler history`: files and logs line by line, each case once, and every broken line named."""

from __future__ import annotations

import csv
import io
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime import case_lines as history_lines
from reconciler.features.history.summary import summed_up
from reconciler.model.case_outcome import CaseResult
from tests.docs.pages import named
from tests.support.builders import NOW
from tests.support.cases import ended, line

OTHER = '{"at": "2026-11-21T12:00:00Z", "event": "node", "node": "a"}'


def write(folder: Path, *lines: str, name: str = "history.jsonl") -> str:
    path = folder / name
    path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run the command; its exit code, its document and what it wrote to stderr."""
    code = main(["history", *arguments, "--output", "json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out), printed.err


def test_the_cases_of_several_files_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write(tmp_path, line(ended("a")), line(ended("b")), name="one")
    two = write(tmp_path, line(ended("c", outcome=CaseResult.MISSED)), name="two")
    code, document, _ = told(capsys, one, two)

    assert code == 0
    assert document["total"]["cases"] == 3
    assert document["lines"] == {"cases": 3, "repeated": 0, "older": 0, "other": 0, "broken": 0}
    assert [node["node"] for node in document["struck"]] == ["c"]


def test_the_log_of_serve_can_be_piped_in(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{OTHER}\n{line(ended())}\n\n{OTHER}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, document, _ = told(capsys, "-")

    assert code == 0
    assert (document["lines"]["cases"], document["lines"]["other"]) == (1, 2)


def test_a_case_with_several_lines_counts_once_with_its_last_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = "2026-11-21T09:00:00Z"
    lines = [
        line(ended(), caseStart=start, ended="2026-11-21T12:00:00Z", outcome="late"),
        line(ended(), caseStart=start, ended="2026-11-21T12:00:30Z", outcome="drained"),
        line(ended(), caseStart=start, ended="2026-11-21T11:59:00Z", outcome="missed"),
    ]
    _, document, _ = told(capsys, write(tmp_path, *lines))

    assert document["total"]["cases"] == 1
    assert document["total"]["outcomes"]["drained"] == 1
    assert document["lines"]["repeated"] == 2


@pytest.mark.parametrize(
    ("broken", "because"),
    [
        ('{"event": "case", "node": "a"', "it is no JSON"),
        ("[" * 20_000, "it is no JSON: it is nested too deep"),
        ('{"event": "case", "node": "a"}', "uid is missing"),
        ("[]", "it is list, and not a JSON object"),
        ("x" * 70_000, "it is longer than 65536 bytes"),
    ],
    ids=["cut", "deep", "incomplete", "list", "long"],
)
def test_a_broken_line_is_named_and_the_others_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str, because: str
) -> None:
    file = write(tmp_path, line(ended("a")), broken, line(ended("b")))
    code, document, err = told(capsys, file)

    assert code == 1
    assert document["total"]["cases"] == 2
    assert document["lines"]["broken"] == 1
    (mistake,) = document["brokenLines"]
    assert (mistake["file"], mistake["line"]) == (file, 2)
    assert mistake["because"].startswith(because)
    assert err.startswith(f"{file}:2: {because}")


def test_bytes_that_are_no_utf_8_and_a_last_line_without_an_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history"
    path.write_bytes(b"\xff\xfe\n" + line(ended()).encode())
    code, document, err = told(capsys, str(path))

    assert (code, document["total"]["cases"]) == (1, 1)
    assert err == f"{path}:1: it is no UTF-8\n"


def test_a_file_of_broken_lines_names_the_first_hundred_and_counts_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document, err = told(capsys, write(tmp_path, *["?"] * 250))

    assert code == 1
    assert document["lines"]["broken"] == 250
    assert len(document["brokenLines"]) == 100
    assert err.splitlines()[-1] == "and 150 more lines that can't be read"


def test_since_leaves_out_what_ended_earlier(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = datetime.now(UTC)
    old, new = ended("a", at=now - timedelta(days=31)), ended("b", at=now - timedelta(days=29))
    _, document, _ = told(capsys, write(tmp_path, line(old), line(new)), "--since", "30d")

    assert document["total"]["cases"] == document["lines"]["older"] == 1
    assert document["from"] == document["to"] == (now - timedelta(days=29)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_no_cases_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["history", write(tmp_path, OTHER)])

    assert code == 0
    assert capsys.readouterr().out == "no case is in the history\n"


def test_a_missing_file_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", str(tmp_path / "missing")]) == 2
    assert f"{tmp_path / 'missing'}': No such file or directory" in capsys.readouterr().err


def test_more_cases_than_fit_into_memory_are_refused_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_lines, "MOST_CASES", 2)
    file = write(tmp_path, *[line(ended(name)) for name in ("a", "b", "c")])

    assert main(["history", file]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "name fewer files, or use --since" in printed.err


def test_every_key_of_the_output_has_its_heading() -> None:
    keys = summed_up([ended()], None, NOW, {}).document.keys()

    assert keys - named("output.md") == set()


def test_each_case_is_a_row_with_the_fields_of_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, line(ended("worker-7")), line(ended("worker-8", outcome=CaseResult.MISSED)))
    _, document, _ = told(capsys, file, "--cases", "--node", "7")

    assert (document["node"], len(document["cases"])) == ("worker-7", 1)
    fields = json.loads(line(ended("worker-7")))
    assert document["cases"] == [{key: fields[key] for key in document["cases"][0]}]
    assert document["lines"]["cases"] == 2


def test_a_text_that_somebody_chose_breaks_no_row_of_csv_and_is_no_formula(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {"why": '=HYPERLINK("x"),\r\nlate', "pool": "-1+2", "zone": "\t@sum(1)"}
    people = [{"words": "held by =eve"}, {"words": "approved"}]
    assert (
        main(["history", write(tmp_path, line(ended(), people=people, **chosen)), "--cases", "-o", "csv"])
        == 0
    )
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))

    assert (row["why"], row["pool"], row["zone"]) == ('\'=HYPERLINK("x"),  late', "'-1+2", "'@sum(1)")
    assert (row["people"], row["node"], row["planned"]) == ("held by =eve; approved", "a", "")


def test_csv_is_for_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", write(tmp_path, line(ended())), "-o", "csv"]) == 2
    assert "-o csv is for tables; add --cases" in capsys.readouterr().err


def test_a_node_without_a_case_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document, err = told(capsys, write(tmp_path, line(ended())), "--cases", "--node", "b")

    assert (code, document["cases"], err) == (0, [], "no case of node b is in the history\n")
